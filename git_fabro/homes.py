"""Where run directories lie. What is in one is ``rundir.py``'s."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import RunId
from git_fabro.git.discover import Repository


def home(repository: Repository | None, folder: Path, environment: Mapping[str, str]) -> Path:
    """The folder that holds the run directories of a repository, or of a folder without one."""
    if repository is not None:
        configured = repository.config("fabro.runDir")
        if configured:
            return Path(os.path.expanduser(configured))
        name = repository.common_dir.name
        if name == ".git":
            name = repository.common_dir.parent.name
        name = f"{name.removesuffix('.git')}-{_hash(repository.common_dir)}"
    else:
        name = f"none-{_hash(folder)}"
    state = environment.get("XDG_STATE_HOME") or os.path.join(
        environment.get("HOME") or os.path.expanduser("~"), ".local", "state"
    )
    return Path(state) / "git-fabro" / name


def _hash(path: Path) -> str:
    # Imported here: 3 ms that a log of a run named by its id does not pay.
    import hashlib

    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:8]


def runs_at(home: Path) -> list[RunId]:
    """The ids of the run directories in a folder."""
    try:
        names = os.listdir(home)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(RunId(name) for name in names if layout.is_run_id(name))


def has_journal(home: Path, run: RunId) -> bool:
    """Whether there are records of a run that are in no commit yet."""
    try:
        return os.stat(f"{home}/{run}/journal.jsonl").st_size > 0
    except OSError:
        return False
