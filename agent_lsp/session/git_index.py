"""What a git repository already keeps of the files in its working tree, read from its index without running git.

Invariant: a file counts as kept only while the index describes exactly the file that is there. Nothing is written, and
no program that a repository's configuration names is run (F22, F70).
"""

import os
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_ENTRY = struct.Struct(">10I")
_CONFLICT, _EXTENDED, _LONG_NAME = 0x3000, 0x4000, 0x0FFF
_NOT_THERE = 0x6000  # skip-worktree, intent-to-add
_BLOB_SECONDS = 60.0
_QUIET = ("-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file of the index as it was on disk when git last looked at it; ``blob`` names its content."""

    size: int
    modified: tuple[int, int]
    inode: int
    blob: str

    def describes(self, size: int, modified: int, inode: int) -> bool:
        """Whether a file is still that one; the time in nanoseconds."""
        return (
            self.size == size & 0xFFFFFFFF
            and self.modified == divmod(modified, 1_000_000_000)
            and self.inode == inode & 0xFFFFFFFF
        )


def git_directory(directory: Path) -> Path | None:
    """Where the repository of a working tree lies; None for a directory that is not the top of one."""
    marker = directory / ".git"
    with suppress(OSError, ValueError):
        if marker.is_dir():
            return marker
        name, _, target = marker.read_text(encoding="utf-8").strip().partition(": ")
        if name == "gitdir":
            return Path(os.path.normpath(directory / target))
    return None


def read_index(repository: Path) -> Mapping[str, Entry]:
    """The regular files of an index by their paths, without those that git itself would look at again.

    Empty where it cannot be read, or is of a kind that this does not know (split, sparse).
    """
    try:
        data = (repository / "index").read_bytes()
        written = (repository / "index").stat().st_mtime_ns
        width = _name_width(repository)
    except OSError:
        return {}
    with suppress(ValueError, IndexError, struct.error):
        return {
            path: entry
            for path, mode, entry in _entries(data, width)
            if stat.S_ISREG(mode) and entry.modified < divmod(written, 1_000_000_000)  # else git calls it racy
        }
    return {}


def _name_width(repository: Path) -> int:
    """Bytes of an object's name."""
    common = repository
    with suppress(OSError):  # a linked working tree has its configuration elsewhere
        common = repository / (repository / "commondir").read_text(encoding="utf-8").strip()
    return 32 if b"objectformat = sha256" in (common / "config").read_bytes().lower() else 20


def _entries(data: bytes, width: int) -> Iterator[tuple[str, int, Entry]]:
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index")
    place, name = 12, b""
    for _ in range(count):
        begin = place
        _, _, seconds, nanoseconds, _, inode, mode, _, _, size = _ENTRY.unpack_from(data, place)
        place += _ENTRY.size
        blob = data[place : place + width].hex()
        flags = int.from_bytes(data[place + width : place + width + 2], "big")
        place += width + 2
        more = 0
        if flags & _EXTENDED:
            more = int.from_bytes(data[place : place + 2], "big")
            place += 2
        if version == 4:
            dropped, place = _number(data, place)
            end = data.index(b"\0", place)
            name = name[: len(name) - dropped] + data[place:end]
            place = end + 1
        else:
            length = flags & _LONG_NAME
            end = data.index(b"\0", place + length) if length == _LONG_NAME else place + length
            name = data[place:end]
            place = begin + (end - begin + 8) // 8 * 8  # at least one NUL, to a multiple of eight
        if not flags & _CONFLICT and not more & _NOT_THERE:
            entry = Entry(size=size, modified=(seconds, nanoseconds), inode=inode, blob=blob)
            yield os.fsdecode(name), mode, entry
    if data[place : place + 4] == b"link":
        raise ValueError("a split index")


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A number of variable width, and where it ends."""
    byte = data[place]
    value = byte & 127
    while byte & 128:
        place += 1
        byte = data[place]
        value = (value + 1 << 7) | (byte & 127)
    return value, place + 1


def read_blobs(repository: Path, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The contents that a repository keeps under names; those that it has not are left out. Fetches nothing."""
    wanted, git = list(dict.fromkeys(names)), shutil.which("git")
    if not wanted or git is None:
        return
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    try:
        ran = subprocess.run(
            # Its own working tree may be gone, and git would look for it.
            [git, *_QUIET, f"--git-dir={repository}", f"--work-tree={repository}", "cat-file", "--batch"],
            input="".join(f"{name}\n" for name in wanted).encode(),
            capture_output=True,
            env=environment,
            timeout=_BLOB_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    yield from _blobs(ran.stdout)


def _blobs(output: bytes) -> Iterator[tuple[str, bytes]]:
    place = 0
    while (end := output.find(b"\n", place)) >= 0:
        words = output[place:end].split()
        place = end + 1
        if len(words) == 3 and words[1] == b"blob":
            size = int(words[2])
            yield words[0].decode("ascii"), output[place : place + size]
            place += size + 1
