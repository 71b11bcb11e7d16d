#!/bin/sh
# Sets git-fabro up in .venv beside this file; then, as asked, tests it or shows what it does.
#
#   ./install.sh           install, and say how to put it on PATH
#   ./install.sh --demo    install, then run, kill and resume a workflow in a scratch repository
#   ./install.sh --test    install, then linters, type checks and the whole test suite
#   ./install.sh --test --long    the same with the long tests at their full size
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
venv=$here/.venv
python=${PYTHON:-python3}
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

usage() {
    sed -n '2,7s/^# \{0,1\}//p' "$0"
}

die() {
    printf 'fatal: %s\n' "$1" >&2
    exit 1
}

need() {
    command -v git >/dev/null 2>&1 || die "git is not installed"
    command -v "$python" >/dev/null 2>&1 || die "no $python on PATH"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "git-fabro needs Python 3.11 or newer, this is $("$python" --version 2>&1)"
}

# Installs into .venv; what it is to hold ("" or "[test]") is the argument.
install_into_venv() {
    if ! [ -x "$venv/bin/python" ]; then
        "$python" -m venv "$venv" || die "cannot make $venv (Debian: apt-get install python3-venv)"
    fi
    "$venv/bin/python" -m pip install --quiet --compile --editable "$here$1"
    # pip leaves an editable package as it is; 40 ms a start where Python may not write bytecode.
    "$venv/bin/python" -m compileall -q "$here/git_fabro" || :
    link_commands
}

# `git fabro run` and `git fabro-run` are the same program; git finds the second by its name.
# Pages lie where man looks for those of a program on PATH: beside its bin folder.
link_commands() {
    "$venv/bin/python" - "$venv" "$here/man" <<'EOF'
import os, sys
from git_fabro.cli.start import COMMANDS

venv, pages = sys.argv[1:]
links = {f"bin/git-fabro-{name}": "git-fabro" for name in COMMANDS}
for page in os.listdir(pages):
    links[f"share/man/man{page[-1]}/{page}"] = os.path.join(pages, page)
for link, target in links.items():
    path = os.path.join(venv, link)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.lexists(path):
        os.symlink(target, path)
EOF
}

run_tests() {
    cd "$here"
    "$venv/bin/ruff" check .
    "$venv/bin/ruff" format --check .
    "$venv/bin/mypy"
    exec "$venv/bin/python" -W error -m pytest "$@"
}

case ${1:-} in
'')
    need
    install_into_venv ''
    printf 'installed; put it on PATH:\n  export PATH="%s:$PATH"\n' "$venv/bin"
    ;;
--demo)
    need
    install_into_venv ''
    PATH=$venv/bin:$PATH exec sh "$here/tests/demo.sh"
    ;;
--test)
    need
    install_into_venv '[test]'
    shift
    run_tests "$@"
    ;;
-h | --help) usage ;;
*)
    usage >&2
    exit 129
    ;;
esac
