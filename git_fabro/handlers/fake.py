"""``git-fabro-fake-agent``: an agent for tests and demonstrations that always says the same.

Started as a file by the preset ``fake``, so nothing but the standard library is imported here.

Answers come from a folder, ``$FABRO_FAKE_ANSWERS`` or the first argument. For node ``plan`` on its
second visit the folder ``plan/2`` is looked at, else ``plan``. In it, all optional:

- ``response``: printed on stdout; without it, the first line of the prompt
- ``stderr``: printed on stderr
- ``files/``: copied into the current directory
- ``delete``: paths, one a line, that are removed from the current directory
- ``exit``: the exit status

No path leads out of the current directory, not even through a symbolic link.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def main() -> int:
    """Answers one prompt on stdin; the exit status is the answer's."""
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    place = answer_folder()
    if place is None:
        sys.stdout.write(first_line(prompt) + "\n")
        return 0
    copy_files(place / "files", Path.cwd())
    for line in read(place / "delete").splitlines():
        remove(line.strip(), Path.cwd())
    sys.stderr.write(read(place / "stderr"))
    response = place / "response"
    sys.stdout.write(read(response) if response.is_file() else first_line(prompt) + "\n")
    return int(read(place / "exit").strip() or 0)


def answer_folder() -> Path | None:
    """The folder with the answer for this node and visit; None if there is none."""
    named = os.environ.get("FABRO_FAKE_ANSWERS") or (sys.argv[1] if len(sys.argv) > 1 else "")
    node, visit = os.environ.get("FABRO_NODE_ID", ""), os.environ.get("FABRO_VISIT", "")
    if not named or not is_name(node):
        return None
    places = [Path(named, node, visit)] if is_name(visit) else []
    return next((place for place in (*places, Path(named, node)) if place.is_dir()), None)


def is_name(text: str) -> bool:
    """Whether a text is one segment of a path."""
    return text not in ("", ".", "..") and "/" not in text and "\0" not in text


def copy_files(source: Path, target: Path) -> None:
    """Copies a folder's files, with their modes; symbolic links as such."""
    for path in sorted(source.rglob("*")):
        place = within(str(path.relative_to(source)), target)
        if place is None or (path.is_dir() and not path.is_symlink()):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        shutil.copy2(path, place, follow_symlinks=False)


def remove(name: str, target: Path) -> None:
    """Removes a file or folder by its path below target."""
    place = within(name, target)
    if place is None or place == target:
        return
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def within(name: str, target: Path) -> Path | None:
    """The path of a name below target; None if it, or a link on its way, leads out of it."""
    place = target / name
    if not name or ".." in place.parts or not place.is_relative_to(target):
        return None
    is_inside = place.parent.resolve().is_relative_to(target.resolve())
    return place if is_inside or place == target else None


def read(path: Path) -> str:
    """A file's text; nothing where there is no file."""
    return path.read_text("utf-8") if path.is_file() else ""


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


if __name__ == "__main__":
    sys.exit(main())
