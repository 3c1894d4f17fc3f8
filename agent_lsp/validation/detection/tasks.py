"""Runners that wrap other tools: tox, nox, make and pre-commit. They count for what nothing more direct covers."""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from agent_lsp.validation.detection.evidence import COMPILE_SECONDS, SECONDS, Evidence, validator
from agent_lsp.validation.detection.python import PATTERNS, Launcher
from agent_lsp.validation.detection.tree import Folder, section
from agent_lsp.validation.validator import Kind, Validator

Task: TypeAlias = Callable[[Folder], Iterator[Validator]]

_SESSIONS: dict[str, Kind] = {
    **dict.fromkeys(("lint", "linters", "style", "flake8", "ruff"), "lint"),
    **dict.fromkeys(("types", "typing", "typecheck", "type-check", "type", "mypy", "pyright"), "types"),
    **dict.fromkeys(("test", "tests", "unit"), "test"),
}
_TOOLS = frozenset({"flake8", "ruff", "mypy", "pyright"})
_NOX_SESSION = re.compile(r"^@(?:nox\.)?session\b[^\n]*\n(?:@[^\n]*\n){0,20}def +(\w+)", re.MULTILINE)
_TARGET = re.compile(r"([\w.\-/ ]+?)[ \t]*::?(?![=:])")
_LONGEST_LINE = 300


def python_sessions(folder: Folder) -> Iterator[Validator]:
    """The sessions of tox or nox whose names say what they are, one of a kind."""
    launcher = Launcher(folder)
    kinds: set[Kind] = set()
    for runner, session, evidence in (*_tox(folder), *_nox(folder)):
        kind = _SESSIONS[session]
        if kind not in kinds:
            kinds.add(kind)
            option = ("-e", session) if runner == "tox" else ("-s", session)
            yield validator(
                folder,
                evidence,
                name=f"{runner}-{session}",
                kind=kind,
                command=launcher.tool(runner, *option),
                tool=session if session in _TOOLS else "",
                patterns=PATTERNS,
                timeout=SECONDS["test"],
            )


def _tox(folder: Folder) -> Iterator[tuple[str, str, Evidence]]:
    for session in _SESSIONS:
        for file, title, known in (
            ("tox.ini", f"testenv:{session}", folder.ini("tox.ini")),
            ("setup.cfg", f"testenv:{session}", folder.ini("setup.cfg")),
            ("tox.toml", f"env.{session}", section(folder.toml("tox.toml"), "env")),
            ("pyproject.toml", f"tool.tox.env.{session}", section(folder.toml("pyproject.toml"), "tool", "tox", "env")),
        ):
            if (session if file.endswith(".toml") else title) in known:
                line = folder.line(file, rf"^\s*\[{re.escape(title)}[\].]")
                yield "tox", session, Evidence(file=file, line=line, why=f"[{title}] in {folder.label(file)}")


def _nox(folder: Folder) -> Iterator[tuple[str, str, Evidence]]:
    found = set(_NOX_SESSION.findall(folder.text("noxfile.py")))
    for session in _SESSIONS:
        if session in found:
            why = f'session "{session}" in {folder.label("noxfile.py")}'
            yield (
                "nox",
                session,
                Evidence(file="noxfile.py", line=folder.line("noxfile.py", rf"def {session}\b"), why=why),
            )


def make_targets(folder: Folder) -> Iterator[Validator]:
    """The targets lint, check and test of a Makefile; check is a test where there is no target test, as in GNU's."""
    file = folder.first("GNUmakefile", "makefile", "Makefile")
    targets: dict[str, int] = {}
    for number, line in enumerate(folder.text(file).split("\n") if file else (), 1):
        if found := _TARGET.match(line[:_LONGEST_LINE]):
            for name in found[1].split():
                targets.setdefault(name, number)
    kinds: dict[str, Kind] = {"lint": "lint", "test": "test", "check": "lint" if "test" in targets else "test"}
    for target, kind in kinds.items():
        if target in targets:
            evidence = Evidence(file=file, line=targets[target], why=f'target "{target}" in {folder.label(file)}')
            yield validator(folder, evidence, name=f"make-{target}", kind=kind, command=("make", target), tool="make")


def pre_commit(folder: Folder) -> Iterator[Validator]:
    """The hooks of pre-commit, which has one configuration for a repository."""
    file = folder.first(".pre-commit-config.yaml", ".pre-commit-config.yml")
    if file and folder.parent is None:
        evidence = Evidence(file=file, why=folder.label(file))
        yield validator(
            folder,
            evidence,
            name="pre-commit",
            kind="lint",
            command=Launcher(folder).tool("pre-commit", "run", "--all-files"),
            tool="pre-commit",
            timeout=COMPILE_SECONDS,
        )
