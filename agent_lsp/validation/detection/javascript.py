"""JavaScript and TypeScript: the scripts of package.json, and tools that are configured without a script.

Invariant: nothing that watches is started, and nothing is downloaded to run it.
"""

import re
import shlex
from collections.abc import Iterator

from agent_lsp.validation.detection.evidence import Evidence, validator
from agent_lsp.validation.detection.tree import Folder, section
from agent_lsp.validation.validator import Kind, Validator

_ENDS = ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte", "astro")
_SOURCES = tuple(f"**/*.{end}" for end in _ENDS)
_CONFIGURATION = ("**/package.json", "**/tsconfig*.json")
_PATTERNS: dict[Kind, tuple[str, ...]] = {
    "lint": (*_SOURCES, *_CONFIGURATION),
    "types": (*_SOURCES, *_CONFIGURATION),
    "test": (*_SOURCES, "**/*.json", "**/*.snap"),
}
_SCRIPTS: dict[Kind, tuple[str, ...]] = {
    "lint": ("lint", "lint:check", "lint:ci", "lint:js", "eslint"),
    "types": ("typecheck", "type-check", "check-types", "types:check", "check:types", "types", "tsc", "lint:types"),
    "test": ("test", "test:ci", "test:run", "test:unit", "tests"),
}
_KINDS: tuple[Kind, ...] = ("lint", "types", "test")
_MANAGERS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
_EXECUTE = {"npm": ("npx", "--no-install"), "pnpm": ("pnpm", "exec"), "yarn": ("yarn", "run"), "bun": ("bun", "run")}
_TOOLS: dict[Kind, tuple[str, ...]] = {
    "lint": ("eslint", "biome", "vue-tsc", "tsc"),
    "types": ("vue-tsc", "tsc"),
    "test": ("vitest", "jest"),
}
_MODULES = ("js", "mjs", "cjs", "ts", "mts", "cts")
_ESLINT = tuple(f"eslint.config.{end}" for end in _MODULES)
_LEGACY_ESLINT = tuple(f".eslintrc{end}" for end in (".js", ".cjs", ".json", ".yml", ".yaml", ""))
_WATCHES = re.compile(
    r"(^|\s)(--watch(All)?(=(?!false)\S+)?|watch|dev)(?=\s|$)|\b(nodemon|chokidar)\b"
    r"|\b(tsc|vitest|mocha)\b[^&|;]*\s-w(?=\s|$)"
)
_REPAIRS = re.compile(r"(^|\s)--(fix|write|apply)(?=\s|$)")
_NO_TEST = "no test specified"
_LONGEST_SCRIPT = 2_000


def validators(folder: Folder) -> Iterator[Validator]:
    """What a folder's package is judged by. A workspace's own script counts for its members too."""
    if not folder.has("package.json") and not folder.first(*_ESLINT, "biome.json", "biome.jsonc"):
        return
    root = next((other for other in folder.above if _is_workspace(other)), None)
    for kind in _KINDS:
        if root is None or not any(_of_kind(root, kind)):
            yield from _of_kind(folder, kind)


def _is_workspace(folder: Folder) -> bool:
    return "workspaces" in folder.json("package.json") or folder.has("pnpm-workspace.yaml")


def _of_kind(folder: Folder, kind: Kind) -> Iterator[Validator]:
    script = _script(folder, kind)
    if script is not None:
        yield script
    elif kind == "lint":
        yield from _linters(folder)
    elif kind == "types":
        yield from _typescript(folder)
    else:
        yield from _tests(folder)


# --- scripts


def _script(folder: Folder, kind: Kind) -> Validator | None:
    """The best script of a kind: one that ends by itself, and rather one that changes nothing."""
    scripts = section(folder.json("package.json"), "scripts")
    fitting = []
    for name in _SCRIPTS[kind]:
        text = scripts.get(name)
        if isinstance(text, str) and 0 < len(text.strip()) < _LONGEST_SCRIPT and _NO_TEST not in text:
            command = _ending(folder, name, text)
            if command:
                fitting.append((bool(_REPAIRS.search(text)), name, text, command))
    if not fitting:
        return None
    _, name, text, command = min(fitting, key=lambda one: one[0])
    words = re.findall(r"[\w-]+", text)
    tool = next((tool for tool in _TOOLS[kind] if tool in words), "eslint" if "next lint" in text else "")
    tool = tool.removeprefix("vue-")
    return validator(
        folder,
        Evidence(
            file="package.json",
            line=folder.line("package.json", rf'^\s*"{name}"\s*:'),
            why=f'script "{name}" in {folder.label("package.json")}',
        ),
        name=tool or f"{_manager(folder)}-{name}",
        kind=kind,
        command=command,
        tool=tool,
        patterns=_PATTERNS[kind],
    )


def _ending(folder: Folder, name: str, text: str) -> tuple[str, ...]:
    """The command of a script that ends by itself: what watches is told not to, or left out if it cannot be told."""
    last = re.split(r"&&|\|\||;", text)[-1].strip()
    words = _words(last)
    if _WATCHES.search(text):
        plain = tuple(word for word in words if word != "-w" and not _WATCHES.fullmatch(word))
        if words and last == text.strip() and plain and plain[0] in ("vitest", "jest"):
            return _execute(folder, plain[0], *(("run",) if plain[0] == "vitest" else ()), *plain[1:])
        return ()
    option: tuple[str, ...] = ()
    if "vitest" in words and not {"run", "--run", "bench", "list"} & set(words):
        option = ("--run",)
    elif "react-scripts" in words and "test" in words and "--watchAll=false" not in words:
        option = ("--watchAll=false",)
    elif words[:2] in (["ng", "test"], ["ng", "t"]) and not {"--watch=false", "--no-watch"} & set(words):
        option = ("--watch=false",)
    return _run(folder, name, *option)


def _words(command: str) -> list[str]:
    """The words of a simple command, none where it needs a shell."""
    try:
        return [] if re.search(r"[|&;<>$`()*?\n]", command) else shlex.split(command)
    except ValueError:
        return []


def _manager(folder: Folder) -> str:
    """The package manager whose lock file is nearest, else the one that package.json names."""
    for place in (folder, *folder.above):
        for lock, manager in _MANAGERS.items():
            if place.has(lock):
                return manager
    for place in (folder, *folder.above):
        named = str(place.json("package.json").get("packageManager", "")).partition("@")[0]
        if named in _EXECUTE:
            return named
    return "npm"


def _run(folder: Folder, script: str, *options: str) -> tuple[str, ...]:
    manager = _manager(folder)
    return (manager, "run", script, *(("--",) if options and manager == "npm" else ()), *options)


def _execute(folder: Folder, tool: str, *arguments: str) -> tuple[str, ...]:
    return (*_EXECUTE[_manager(folder)], tool, *arguments)


# --- tools without a script


def _linters(folder: Folder) -> Iterator[Validator]:
    for tool, file, why, arguments in (*_eslint(folder), *_biome(folder)):
        yield validator(
            folder,
            Evidence(file=file, why=why),
            name=tool,
            kind="lint",
            command=_execute(folder, tool, *arguments),
            tool=tool,
            patterns=(*_PATTERNS["lint"], file),
        )


def _eslint(folder: Folder) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """The old kind of configuration looks at ``.js`` alone unless told; the new kind knows its files itself."""
    flat = folder.first(*_ESLINT)
    old = folder.first(*_LEGACY_ESLINT)
    if flat:
        yield "eslint", flat, folder.label(flat), (".",)
    elif old:
        yield "eslint", old, folder.label(old), ("--ext", ".js,.jsx,.mjs,.cjs,.ts,.tsx", ".")
    elif "eslintConfig" in folder.json("package.json"):
        why = f'"eslintConfig" in {folder.label("package.json")}'
        yield "eslint", "package.json", why, ("--ext", ".js,.jsx,.mjs,.cjs,.ts,.tsx", ".")


def _biome(folder: Folder) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    file = folder.first("biome.json", "biome.jsonc")
    if file:
        yield "biome", file, folder.label(file), ("check", ".")


def _typescript(folder: Folder) -> Iterator[Validator]:
    """A configuration that only refers to others checks nothing unless it is built."""
    if not folder.has("tsconfig.json"):
        return
    configuration = folder.json("tsconfig.json")
    build = ("--build",) if configuration.get("files") == [] and configuration.get("references") else ()
    yield validator(
        folder,
        Evidence(file="tsconfig.json", why=folder.label("tsconfig.json")),
        name="tsc",
        kind="types",
        command=_execute(folder, "tsc", *build, "--noEmit", "--pretty", "false"),
        tool="tsc",
        patterns=_PATTERNS["types"],
    )


def _tests(folder: Folder) -> Iterator[Validator]:
    """A runner that is only installed may have no tests yet, which is no failure."""
    package = folder.json("package.json")
    for tool, arguments in (("vitest", ("run",)), ("jest", ())):
        file = folder.first(*(f"{tool}.config.{end}" for end in (*_MODULES, "json")))
        why = folder.label(file)
        if not file and tool == "jest" and "jest" in package:
            file, why = "package.json", f'"jest" in {folder.label("package.json")}'
        options: tuple[str, ...] = ()
        if not file and tool in {**section(package, "devDependencies"), **section(package, "dependencies")}:
            file, why, options = "package.json", f"{tool} in {folder.label('package.json')}", ("--passWithNoTests",)
        if file:
            line = folder.line(file, rf'^\s*"{tool}"\s*:') if file == "package.json" else 0
            yield validator(
                folder,
                Evidence(file=file, line=line, why=why),
                name=tool,
                kind="test",
                command=_execute(folder, tool, *arguments, *options),
                tool=tool,
                patterns=(*_PATTERNS["test"], file),
            )
            return
