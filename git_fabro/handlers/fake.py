"""``git-fabro-fake-agent``: an agent for tests and demonstrations that always says the same.

Started as a file by the preset ``fake``. It imports nothing that a bare interpreter has not loaded:
``pathlib`` and ``shutil`` would double its 10 ms.

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
import sys


def main() -> int:
    """Answers one prompt on stdin; the exit status is the answer's."""
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    place = answer_folder()
    if place is None:
        say(first_line(prompt) + "\n")
        return 0
    copy_files(os.path.join(place, "files"))
    for line in (read(place, "delete") or "").splitlines():
        remove(line.strip())
    sys.stderr.write(read(place, "stderr") or "")
    response = read(place, "response")
    say(first_line(prompt) + "\n" if response is None else response)
    return int((read(place, "exit") or "").strip() or 0)


def answer_folder() -> str | None:
    """The folder with the answer for this node and visit; None if there is none."""
    named = os.environ.get("FABRO_FAKE_ANSWERS") or (sys.argv[1] if len(sys.argv) > 1 else "")
    node, visit = os.environ.get("FABRO_NODE_ID", ""), os.environ.get("FABRO_VISIT", "")
    if not named or not is_name(node):
        return None
    places = [os.path.join(named, node)]
    if is_name(visit):
        places.insert(0, os.path.join(named, node, visit))
    return next((place for place in places if os.path.isdir(place)), None)


def is_name(text: str) -> bool:
    """Whether a text is one segment of a path."""
    return text not in ("", ".", "..") and "/" not in text and "\0" not in text


def copy_files(source: str) -> None:
    """Copies a folder's files, with their modes; symbolic links as such."""
    for folder, folders, files in os.walk(source):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*files, *links):
            path = os.path.join(folder, name)
            place = within(os.path.relpath(path, source))
            if place is not None:
                copy(path, place)


def copy(path: str, place: str) -> None:
    """Puts a file or link in another's place, which is replaced and not written through."""
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.lexists(place):
        os.unlink(place)
    if os.path.islink(path):
        os.symlink(os.readlink(path), place)
        return
    with open(path, "rb") as old, open(place, "xb") as new:
        new.write(old.read())
    os.chmod(place, os.stat(path).st_mode & 0o777)


def remove(name: str) -> None:
    """Removes a file or folder by its path below the current directory."""
    place = within(name)
    if place is None or not os.path.lexists(place):
        return
    if os.path.islink(place) or not os.path.isdir(place):
        os.unlink(place)
        return
    for folder, folders, files in os.walk(place, topdown=False):
        for name in (*files, *folders):
            path = os.path.join(folder, name)
            remove_one = os.unlink if name in files or os.path.islink(path) else os.rmdir
            remove_one(path)
    os.rmdir(place)


def within(name: str) -> str | None:
    """A path below the current directory; None if it, or a link on its way, leads out of it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or name.startswith("/"):
        return None
    here = os.path.realpath(".")
    parent = os.path.realpath(os.path.join(here, *parts[:-1]))
    if os.path.commonpath((here, parent)) != here:
        return None
    return os.path.join(parent, parts[-1])


def read(folder: str, name: str) -> str | None:
    """A file's text; None where there is no file."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def say(text: str) -> None:
    """Prints a text as UTF-8, whatever the locale."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


if __name__ == "__main__":
    sys.exit(main())
