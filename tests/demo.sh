#!/bin/sh
# What git-fabro does, shown on a real workflow in a scratch repository: run, kill -9, resume, git log.
# Called by install.sh --demo with git-fabro on PATH; leaves nothing behind.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME="$scratch/home" XDG_STATE_HOME="$scratch/state" GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Demo GIT_AUTHOR_EMAIL=demo@example.com
export GIT_COMMITTER_NAME=Demo GIT_COMMITTER_EMAIL=demo@example.com
mkdir -p "$HOME" "$scratch/tally" && cd "$scratch/tally"

say() {
    printf '\n# %s\n' "$*"
}

show() {
    printf '$ %s\n' "$*"
    "$@" 2>&1 | sed "s|$scratch|.|g"
}

git init -q -b main
printf '3\n4\n' >readings
cat >ship.fabro <<'EOF'
digraph Ship {
    goal="Sum the readings, test the sum, write it down"
    node [shape=parallelogram]
    start [shape=Mdiamond]; exit [shape=Msquare]

    build [script="awk '{ sum += $1 } END { print sum }' readings > sum; sleep 1"]
    check [shape=component]
    exact [script="test \"$(cat sum)\" = 7 && echo exact > exact.txt; sleep 1"]
    size  [script="wc -c < sum > size.txt; sleep 1"]
    join  [shape=tripleoctagon, merge=all]
    test  [script="test -e RELEASE"]
    fix   [script="echo \"sum: $(cat sum)\" > RELEASE; sleep 1"]

    start -> build -> check
    check -> exact -> join
    check -> size  -> join
    join -> test
    test -> exit [condition="outcome=success"]
    test -> fix  [condition="outcome=fail"]
    fix -> test
}
EOF
git add -A && git commit -qm 'readings and a workflow'

say 'The workflow is checked first.'
show git fabro validate ship.fabro

say 'It runs; in the middle of the fan-out its driver is killed with kill -9.'
printf '$ git fabro run ship.fabro &\n'
git-fabro run ship.fabro >"$scratch/first" 2>&1 &
driver=$!
run=
until [ -n "$run" ] && git log --format=%s "fabro/meta/$run" | grep -q 'checkpoint build@1'; do
    run=$(git for-each-ref --format='%(refname:lstrip=4)' refs/heads/fabro/meta)
    sleep 0.1
done
sleep 0.5
kill -9 "$driver"
wait "$driver" 2>/dev/null || true
sed "s|$scratch|.|g" "$scratch/first"
printf '$ kill -9 %s\n' DRIVER
show git fabro list

say 'It is resumed: finished nodes do not run again.'
show git fabro resume "$run"

say 'Plain git tells the whole story.'
show git log --graph --format='%h %s' "fabro/run/$run"
show git log -1 --format=%B "fabro/run/$run"
show git diff --stat "main..fabro/run/$run"
show git show "fabro/meta/$run:nodes/exact/status.json"
show git log -1 --format=%N --notes=fabro "fabro/run/$run"

say 'And git finds every object in order.'
show git fsck --strict --no-dangling --no-progress
printf '\nDone: a run was killed with kill -9 and resumed; every finished node is a commit of fabro/run/%s.\n' "$run"
