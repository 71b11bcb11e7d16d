"""The change journal: which names of a work tree something happened to since they were looked at.

The kernel queues an event before the call that caused it returns, so what is read at a snapshot is
complete, or the kernel says that it is not. It does not tell of a change through another name of
the same file: files that are known to have one are looked at each time, and all are when a name is
new. What is left is a name that a file was given outside while it was watched, or inside and lost
again before the snapshot, and memory that a process mapped and keeps beyond its node. That is why a
full scan comes round again and again, and at the end.

Source: inotify(7)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inotify_simple import INotify

#: What happened, by folder: ``{b"a/": {b"file"}}``.
Happened = dict[bytes, set[bytes]]

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x800, 0x2000, 0x4000, 0x8000
_ONLY_FOLDER, _NO_FOLLOW, _IS_FOLDER = 0x1000000, 0x2000000, 0x40000000
_NAMES = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_WANTED = _NAMES | _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVE_SELF | _ONLY_FOLDER | _NO_FOLLOW
_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
# The rest is for the user's editors.
_SHARE = 4


class Journal:
    """The watches on the folders of one work tree."""

    def __init__(self, top: bytes, notify: INotify) -> None:
        self._top = top
        self._is_of = _identity(top)
        self._notify = notify
        self._paths: dict[int, bytes] = {}
        self._watches: dict[bytes, int] = {}
        self._most = _most_watches()
        #: Whether every folder could be watched so far.
        self.is_whole = True

    @classmethod
    def begin(cls, top: bytes) -> Journal | None:
        """A journal that watches nothing yet; None where there is no such thing, or no more of it.

        Imported here: 4 ms that only those pay who watch.
        """
        try:
            from inotify_simple import INotify

            return cls(top, INotify())
        except (ImportError, OSError):
            return None

    def close(self) -> None:
        self._notify.close()

    def watch(self, path: bytes) -> None:
        """Watch a folder from now on; to be called before it is looked at."""
        if path in self._watches or not self.is_whole:
            return
        try:
            if len(self._watches) >= self._most:
                raise OSError("too many")
            watch = self._notify.add_watch(os.path.join(self._top, path), _WANTED)
        except OSError:
            # No more watches, or the folder is gone: then a full scan finds out.
            self.is_whole = False
            return
        former = self._paths.get(watch)
        if former is not None:
            # It was moved here, and the event for that is still to be read.
            del self._watches[former]
        self._paths[watch] = path
        self._watches[path] = watch

    def read(self) -> Happened | None:
        """What happened since the last call; None: nobody knows, and the journal is of no use."""
        happened: Happened = {}
        for event in self._notify.read(timeout=0):
            if event.mask & (_OVERFLOW | _UNMOUNT):
                self.is_whole = False
                continue
            path = self._paths.get(event.wd)
            if path is None:
                continue
            if event.mask & _IGNORED:
                del self._paths[event.wd]
                self._watches.pop(path, None)
            elif event.name:
                name = os.fsencode(event.name)
                happened.setdefault(path, set()).add(name)
                if event.mask & _IS_FOLDER and event.mask & _NAMES:
                    self._leave(path + name + b"/")
            if path == b"" and event.mask & (_IGNORED | _MOVE_SELF):
                self.is_whole = False
        if _identity(self._top) != self._is_of:
            # A folder above the top was moved, of which its watch is not told.
            self.is_whole = False
        return happened if self.is_whole else None

    def _leave(self, path: bytes) -> None:
        """A folder has come or gone: what lies there now is watched when it is looked at."""
        for below in [one for one in self._watches if one.startswith(path)]:
            watch = self._watches.pop(below)
            self._paths.pop(watch, None)
            try:
                self._notify.rm_watch(watch)
            except OSError:
                # It went with its folder.
                continue


def _identity(top: bytes) -> tuple[int, int] | None:
    try:
        found = os.stat(top)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _most_watches() -> int:
    try:
        return int(_LIMIT.read_text()) // _SHARE
    except (OSError, ValueError):
        return 0
