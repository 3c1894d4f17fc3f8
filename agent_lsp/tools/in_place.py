"""Writing into a file that another cannot take the place of, because of its hard links or its owner.

Invariant: the file holds the new content or the old one afterwards, or else the error says that it holds neither.
"""

import os
from pathlib import Path


class TornFileError(OSError):
    """A file that holds neither its old content nor its new one."""


def overwrite(descriptor: int, content: bytes, previous: bytes, copy: Path) -> None:
    """Write into an open file, and close it; on an error, put back what it held, and raise the error.

    Raises TornFileError where that fails too; it names ``copy``, which holds the new content. The file is made shorter
    only once all is written, so that on a full disk the old content always has its room.
    """
    try:
        try:
            _fill(descriptor, content)
        except OSError as error:
            try:
                _fill(descriptor, previous)
            except OSError:
                kept = f"and the old content could not be put back; the new one is in {copy}"
                raise TornFileError(error.errno, f"{error.strerror}, {kept}") from error
            raise
    finally:
        os.close(descriptor)


def _fill(descriptor: int, content: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.ftruncate(descriptor, len(content))
    os.fsync(descriptor)
