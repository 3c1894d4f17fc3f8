"""Workspaces to be changed and put back: what is in them, to the last bit, and what git says of them."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "protocol.file.allow=always")


def git(directory: Path, *arguments: str) -> str:
    """Run git as a user without settings would."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(
        ["git", *IDENTITY, *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout


def tree(root: Path) -> dict[str, tuple[str, int, str]]:
    """Kind, mode and content of each path below a root, repositories aside."""
    found = {}
    for folder, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name != ".git"]
        for name in (*directories, *files):
            path = Path(folder, name)
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            if path.is_symlink():
                entry = ("link", 0, str(path.readlink()))
            elif path.is_dir():
                entry = ("directory", mode, "")
            elif not path.is_file():
                entry = ("other", mode, "")
            else:
                entry = ("file", mode, hashlib.sha256(path.read_bytes()).hexdigest())
            found[path.relative_to(root).as_posix()] = entry
    return found


def repository_state(root: Path) -> tuple[str, ...]:
    """What git knows of a repository: references, stash, index, objects' count, configuration."""
    return (
        git(root, "for-each-ref"),
        git(root, "stash", "list"),
        git(root, "ls-files", "--stage"),
        git(root, "rev-parse", "HEAD"),
        git(root, "count-objects"),
        (root / ".git" / "config").read_text(),
    )


def plain_workspace(root: Path) -> Path:
    """A workspace without git: files, modes, links, an empty directory, odd names and contents."""
    root.mkdir()
    (root / "a.txt").write_text("a\n")
    (root / "crlf.txt").write_bytes(b"one\r\ntwo\r\nthree")
    (root / "binary.bin").write_bytes(bytes(range(256)))
    (root / "empty").touch()
    (root / "run.sh").write_text("#!/bin/sh\necho hi\n")
    (root / "run.sh").chmod(0o755)
    (root / "private").write_text("x")
    (root / "private").chmod(0o600)
    (root / "ünï \n name").write_text("odd\n")
    (root / "folder" / "inner").mkdir(parents=True)
    (root / "folder" / "inner" / "deep.txt").write_text("deep\n")
    (root / "hollow").mkdir()
    (root / "link").symlink_to("a.txt")
    (root / "dangling").symlink_to("nowhere")
    (root / "to-folder").symlink_to("folder")
    return root


def git_workspace(root: Path) -> Path:
    """The same in a repository with all that a user may have there: a dirty index, a submodule, ignored files."""
    plain_workspace(root)
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    (root / "tracked.txt").write_text("clean\n")
    (root / "staged.txt").write_text("old\n")
    (root / "dirty.txt").write_text("old\n")
    git(root, "init", "-q")
    library = root.parent / "library"
    library.mkdir()
    (library / "lib.txt").write_text("library\n")
    git(library, "init", "-q")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "library")
    git(root, "submodule", "--quiet", "add", str(library), "sub")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    old = 1_600_000_000
    for name in ("tracked.txt", "a.txt", "sub/lib.txt", "folder/inner/deep.txt"):  # else git calls them racy
        os.utime(root / name, (old, old))
    git(root, "update-index", "-q", "--refresh")
    git(root / "sub", "update-index", "-q", "--refresh")
    (root / "staged.txt").write_text("staged\n")
    (root / "added.txt").write_text("added\n")
    git(root, "add", "staged.txt", "added.txt")
    (root / "staged.txt").write_text("staged and more\n")
    (root / "dirty.txt").write_text("dirty\n")
    (root / "untracked.txt").write_text("untracked\n")
    (root / "ignored.log").write_text("ignored\n")
    (root / "build").mkdir()
    (root / "build" / "out.txt").write_text("built\n")
    return root
