"""Files that control what programs do: our settings, version control, editors, CI, shells, package managers (F24)."""

import os
import posixpath
from pathlib import Path

from pathspec import GitIgnoreSpec

from agent_lsp.permissions.shell_words import HOLES
from agent_lsp.workspace import ResolvedPath, Workspace

_NAMES = GitIgnoreSpec.from_lines(
    [
        ".agent-lsp/",
        *(".git", ".hg/", ".gitconfig", ".gitmodules", ".husky/", ".pre-commit-config.yaml"),
        *(".vscode/", ".idea/", "*.code-workspace"),
        *("**/.github/workflows/", ".gitlab-ci.yml", ".circleci/", ".ci/"),
        *(".envrc", ".npmrc", ".pypirc", ".netrc", ".ssh/"),
        *(".profile", ".bashrc", ".bash_profile", ".bash_login", ".kshrc", ".zshrc", ".zshenv", ".zprofile"),
    ]
)


def is_control_file(path: ResolvedPath, workspace: Workspace) -> bool:
    """Whether a path is one of them, or where our settings really lie if links lead there from their usual place."""
    return _NAMES.match_file(path.display.lstrip("/")) or _holds_settings(path.path, workspace)


def _holds_settings(path: Path, workspace: Workspace) -> bool:
    usual = workspace.root / ".agent-lsp"
    places = {Path(os.path.realpath(usual / name)) for name in (".", "settings.json", "settings.local.json")}
    return not places.isdisjoint((path, *path.parents))


def may_name_control_file(word: str) -> bool:
    """Whether a word of a command could name one, or a folder of them, wherever the command runs.

    The value of an option counts too. Of a word that only the shell knows whole, what is known of it is looked at.
    """
    return any(_may_name(text) for text in {word, word.partition("=")[2]} if text)


def _may_name(text: str) -> bool:
    known, *computed = HOLES.split(text, maxsplit=1)
    if computed and known.rpartition("/")[2].startswith("."):
        return True  # ".g*" may be ".git"
    path = posixpath.normpath(known).lstrip("/")
    return _NAMES.match_file(path) or _NAMES.match_file(f"{path}/")
