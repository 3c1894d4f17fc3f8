"""Go, Rust and Java: one tool of the language builds, checks and tests."""

import re
from collections.abc import Iterator

from agent_lsp.validation.detection.evidence import COMPILE_SECONDS, SECONDS, Evidence, validator
from agent_lsp.validation.detection.tree import Folder, section, strings
from agent_lsp.validation.validator import Kind, Validator

_GO = ("**/*.go", "**/go.mod", "**/go.sum")
_RUST = ("**/*.rs", "**/Cargo.toml", "**/Cargo.lock")
_JAVA = ("**/*.java", "**/*.kt", "**/*.kts", "**/*.groovy", "**/*.gradle", "**/pom.xml", "**/*.properties")


def validators(folder: Folder) -> Iterator[Validator]:
    """What a folder's module, crate or build is judged by."""
    yield from _go(folder)
    yield from _rust(folder)
    yield from _maven(folder)
    yield from _gradle(folder)


def _go(folder: Folder) -> Iterator[Validator]:
    """Each module by itself: ``./...`` ends where another module begins."""
    if not folder.has("go.mod"):
        return
    evidence = Evidence(file="go.mod", why=folder.label("go.mod"))
    kinds: dict[str, Kind] = {"vet": "lint", "test": "test"}
    for name, kind in kinds.items():
        yield validator(
            folder,
            evidence,
            name=f"go-{name}",
            kind=kind,
            command=("go", name, "./..."),
            tool="go",
            patterns=_GO,
            timeout=max(COMPILE_SECONDS, SECONDS[kind]),
        )


def _rust(folder: Folder) -> Iterator[Validator]:
    manifest = folder.toml("Cargo.toml")
    if not {"package", "workspace"} & set(manifest):
        return
    whole = "workspace" in manifest
    if not whole and any("workspace" in other.toml("Cargo.toml") for other in folder.above):
        return  # a member: the workspace's commands are about it
    options = ("--workspace", "--message-format", "short") if whole else ("--message-format", "short")
    crate = Evidence(file="Cargo.toml", why=folder.label("Cargo.toml"))
    clippy = _clippy(folder)
    if clippy is not None:
        yield validator(
            folder,
            clippy,
            name="clippy",
            kind="lint",
            command=("cargo", "clippy", *options),
            tool="clippy",
            patterns=(*_RUST, clippy.file),
            timeout=COMPILE_SECONDS,
        )
    yield validator(
        folder,
        crate,
        name="cargo-check",
        kind="build",
        command=("cargo", "check", *options),
        tool="cargo",
        patterns=_RUST,
    )
    yield validator(
        folder,
        crate,
        name="cargo-test",
        kind="test",
        command=("cargo", "test", *options),
        tool="cargo",
        patterns=_RUST,
    )


def _clippy(folder: Folder) -> Evidence | None:
    file = folder.first("clippy.toml", ".clippy.toml")
    if file:
        return Evidence(file=file, why=folder.label(file))
    manifest = folder.toml("Cargo.toml")
    for keys in (("lints", "clippy"), ("workspace", "lints", "clippy")):
        if section(manifest, *keys):
            title = ".".join(keys)
            line = folder.line("Cargo.toml", rf"^\s*\[{re.escape(title)}[\].]")
            return Evidence(file="Cargo.toml", line=line, why=f"[{title}] in {folder.label('Cargo.toml')}")
    file = folder.first("rust-toolchain.toml")
    if "clippy" in strings(section(folder.toml(file), "toolchain").get("components")):
        return Evidence(file=file, line=folder.line(file, "clippy"), why=f"component clippy in {folder.label(file)}")
    return None


def _maven(folder: Folder) -> Iterator[Validator]:
    if not folder.has("pom.xml") or any("<module>" in other.text("pom.xml") for other in folder.above):
        return
    yield validator(
        folder,
        Evidence(file="pom.xml", why=folder.label("pom.xml")),
        name="maven",
        kind="test",
        command=(*_wrapped(folder, "mvnw", "mvn"), "-q", "test"),
        tool="maven",
        patterns=_JAVA,
    )


def _gradle(folder: Folder) -> Iterator[Validator]:
    settings = ("settings.gradle", "settings.gradle.kts")
    file = folder.first("build.gradle", "build.gradle.kts", *settings)
    if not file or any(other.first(*settings) for other in folder.above):
        return
    yield validator(
        folder,
        Evidence(file=file, why=folder.label(file)),
        name="gradle",
        kind="test",
        command=(*_wrapped(folder, "gradlew", "gradle"), "test", "--console=plain"),
        tool="gradle",
        patterns=_JAVA,
    )


def _wrapped(folder: Folder, wrapper: str, program: str) -> tuple[str, ...]:
    """The wrapper that a project brings, which a checkout may have made unexecutable, else the program itself."""
    for height, place in enumerate((folder, *folder.above)):
        if place.has(wrapper):
            path = "../" * height + wrapper
            return (path if height else f"./{path}",) if place.program(wrapper) else ("sh", path)
    return (program,)
