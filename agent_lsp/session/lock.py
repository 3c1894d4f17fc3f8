"""One writer for a session: a lock that the system takes back when its process ends, however it ends."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path


class Busy(Exception):
    """Another process, or another session of this one, holds the lock; ``process`` is its number, if it can be told."""

    def __init__(self, process: str) -> None:
        super().__init__(process)
        self.process = process


SETTLE_SECONDS = 0.5
"""A program that the holder was starting when it was killed has the lock too, until it really is that program."""


class Lock:
    """A lock on a file, held from its making until ``release``. Raises Busy, or OSError where it cannot be made."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            self._take(path)
        except BaseException:
            self.release()
            raise
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def _take(self, path: Path) -> None:
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            try:
                _take(self._descriptor)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise Busy(os.read(self._descriptor, 20).decode("ascii", "replace").strip()) from None
                time.sleep(0.01)
        if not os.path.samestat(os.fstat(self._descriptor), path.stat()):
            raise Busy("")  # it was deleted meanwhile

    def release(self) -> None:
        """Let it go; a second time is nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 20  # a byte behind the text, which others may read meanwhile

    def _take(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock now."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR)
        try:
            _take(descriptor)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False
