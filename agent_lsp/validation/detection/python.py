"""Python's linters, type checkers and tests, and how a project starts them.

Invariant: the project's own environment goes first (F42); a tool found nowhere keeps its plain name.
"""

import os
import re
from collections.abc import Callable, Iterator

from agent_lsp.validation.detection.evidence import Evidence, validator
from agent_lsp.validation.detection.requirements import PROJECT_FILES, hatch_environment, required, uv_options
from agent_lsp.validation.detection.tree import Folder, section
from agent_lsp.validation.validator import REPORT, Validator

PATTERNS = ("**/*.py", "**/*.pyi")
_TEST_PATTERNS = (*PATTERNS, *(f"**/*.{end}" for end in ("toml", "cfg", "ini", "json", "yaml", "yml")))

_FILES = {
    "ruff": ("ruff.toml", ".ruff.toml"),
    "flake8": (".flake8",),
    "mypy": ("mypy.ini", ".mypy.ini"),
    "pyright": ("pyrightconfig.json",),
    "pytest": ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
}
_TABLES = {"ruff": ("ruff",), "mypy": ("mypy",), "pyright": ("pyright", "basedpyright"), "pytest": ("pytest",)}
_SECTIONS = {
    "flake8": (("setup.cfg", "flake8"), ("tox.ini", "flake8")),
    "mypy": (("setup.cfg", "mypy"),),
    "pytest": (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")),
}
_PACKAGES = {"pyright": ("pyright", "basedpyright")}

_SCRIPTS, _END = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
_RUNNERS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
_TEST_FILE = re.compile(r"(test_.*|.*_test)\.py")
_DJANGO_TEST_FILE = re.compile(r"tests?.*\.py")
_IMPORTS = r"^[ \t]*+(?:import|from) {}\b"
_READ_TESTS = 20  # files of tests that are looked into for what they import
_FLAKE8_EXCLUDED = ".venv,venv,node_modules,build,dist"


class Launcher:
    """How a folder's project starts a Python program."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def tool(self, name: str, *arguments: str, module: bool = False) -> tuple[str, ...]:
        """The command of a tool. With ``module`` it is run by the interpreter, which puts the folder on its path."""
        found = self._environment(name)
        if found:
            python = found.removesuffix(name + _END) + "python" + _END
            usable = module and self._folder.program(python)
            return (python, "-m", name, *arguments) if usable else (found, *arguments)
        prefix = self._runner(name)
        if prefix:
            return (*prefix, *(("python", "-m") if module else ()), name, *arguments)
        environment = hatch_environment(self._folder, name)
        if environment:
            return ("hatch", "run", name if environment == "default" else f"{environment}:{name}", *arguments)
        return (name, *arguments)

    def python(self, *arguments: str) -> tuple[str, ...]:
        """A command of the project's interpreter."""
        found = self._environment("python")
        if found:
            return (found, *arguments)
        prefix = self._runner()
        return (*prefix, "python" if prefix or os.name == "nt" else "python3", *arguments)

    def _environment(self, name: str) -> str:
        """The nearest virtual environment's program, relative to the folder, or nothing."""
        for height, place in enumerate((self._folder, *self._folder.above)):
            for environment in (".venv", "venv"):
                program = f"{environment}/{_SCRIPTS}/{name}{_END}"
                if place.program(program):
                    return "../" * height + program
        return ""

    def _runner(self, name: str = "") -> tuple[str, ...]:
        """What puts a program into the environment that the nearest lock file describes."""
        for place in (self._folder, *self._folder.above):
            for lock, runner in _RUNNERS.items():
                if place.has(lock):
                    options = uv_options(self._folder, name) or uv_options(place, name) if runner == "uv" else ()
                    return (runner, "run", *options)
        return ()


def validators(folder: Folder) -> Iterator[Validator]:
    """What a folder's Python project is judged by."""
    makers: dict[str, Callable[[Folder, Evidence], Validator]] = {
        "ruff": _ruff,
        "flake8": _flake8,
        "mypy": _mypy,
        "pyright": _pyright,
    }
    for tool, make in makers.items():
        evidence = _evidence(folder, tool)
        if evidence is None:
            continue
        above = any(_evidence(other, tool) is not None for other in folder.above)
        if not above or (evidence.strong and tool != "ruff"):  # ruff itself reads the nearest configuration
            yield make(folder, evidence)
    yield from _tests(folder)


def _evidence(folder: Folder, tool: str) -> Evidence | None:
    return _configured(folder, tool) or required(folder, *_PACKAGES.get(tool, (tool,)))


def _configured(folder: Folder, tool: str) -> Evidence | None:
    file = folder.first(*_FILES[tool])
    if file:
        return Evidence(file=file, why=folder.label(file))
    for table in _TABLES.get(tool, ()):
        if table in section(folder.toml("pyproject.toml"), "tool"):
            inner = ".ini_options" if section(folder.toml("pyproject.toml"), "tool", table, "ini_options") else ""
            return _section_evidence(folder, "pyproject.toml", f"tool.{table}{inner}")
    for file, title in _SECTIONS.get(tool, ()):
        if title in folder.ini(file):
            return _section_evidence(folder, file, title)
    return None


def _section_evidence(folder: Folder, file: str, title: str) -> Evidence:
    line = folder.line(file, rf"^\s*\[{re.escape(title)}[\].]")
    return Evidence(file=file, line=line, why=f"[{title}] in {folder.label(file)}")


def _ruff(folder: Folder, evidence: Evidence) -> Validator:
    return validator(
        folder,
        evidence,
        name="ruff",
        kind="lint",
        command=Launcher(folder).tool("ruff", "check", "--output-format", "concise", "."),
        tool="ruff",
        patterns=(*PATTERNS, "**/*.ipynb", evidence.file),
    )


def _flake8(folder: Folder, evidence: Evidence) -> Validator:
    """It would look into virtual environments; a configuration that names further exclusions is not overruled."""
    tables = [section(folder.ini(file), "flake8") for file in (".flake8", "setup.cfg", "tox.ini")]
    settled = any({"extend-exclude", "extend_exclude"} & set(table) for table in tables)
    options = () if settled else ("--extend-exclude", _FLAKE8_EXCLUDED)
    return validator(
        folder,
        evidence,
        name="flake8",
        kind="lint",
        command=Launcher(folder).tool("flake8", *options, "."),
        tool="flake8",
        patterns=(*PATTERNS, evidence.file),
    )


def _mypy(folder: Folder, evidence: Evidence) -> Validator:
    tables = [section(folder.toml("pyproject.toml"), "tool", "mypy")]
    tables += [section(folder.ini(file), "mypy") for file in ("mypy.ini", ".mypy.ini", "setup.cfg")]
    settled = any({"files", "packages", "modules"} & set(table) for table in tables)
    targets = () if settled else ("src",) if "src" in folder.children else (".",)
    return validator(
        folder,
        evidence,
        name="mypy",
        kind="types",
        command=Launcher(folder).tool("mypy", "--no-pretty", "--show-column-numbers", *targets),
        tool="mypy",
        patterns=(*PATTERNS, evidence.file),
    )


def _pyright(folder: Folder, evidence: Evidence) -> Validator:
    based = "basedpyright" in evidence.why
    return validator(
        folder,
        evidence,
        name="pyright",
        kind="types",
        command=Launcher(folder).tool("basedpyright" if based else "pyright"),
        tool="pyright",
        patterns=(*PATTERNS, evidence.file),
    )


# --- tests


def _tests(folder: Folder) -> Iterator[Validator]:
    found = _test_runner(folder)
    if found is None:
        return
    tool, evidence, command = found
    if evidence.strong or not any(_test_runner(other) for other in folder.above):
        yield validator(folder, evidence, name=tool, kind="test", command=command, tool=tool, patterns=_TEST_PATTERNS)


def _test_runner(folder: Folder) -> tuple[str, Evidence, tuple[str, ...]] | None:
    evidence = _pytest_evidence(folder)
    if evidence is not None:
        arguments = ("-q", "--no-header", f"--junitxml={REPORT}")
        return "pytest", evidence, Launcher(folder).tool("pytest", *arguments, module=True)
    if "django" in folder.text("manage.py") and next(_below(folder, _DJANGO_TEST_FILE), None):
        evidence = Evidence(file="manage.py", why=f"tests and {folder.label('manage.py')}", strong=False)
        return "unittest", evidence, Launcher(folder).python("manage.py", "test", "--noinput")
    return _unittest(folder) if _is_project(folder) else None


def _unittest(folder: Folder) -> tuple[str, Evidence, tuple[str, ...]] | None:
    for start in _test_places(folder):
        for place, file in _below(start, deep=start is not folder):
            if file.startswith("test_") and _uses_unittest(place, file):
                evidence = _test_evidence(folder, place, file, "unittest")
                package = start.has("__init__.py")
                options = () if start is folder else ("-s", start.path.name, *(("-t", ".") if package else ()))
                command = Launcher(folder).python("-m", "unittest", "discover", *options)
                return "unittest", evidence, command
    return None


def _pytest_evidence(folder: Folder) -> Evidence | None:
    configured = _configured(folder, "pytest")
    if configured is not None:
        return configured
    needed = required(folder, "pytest")
    if needed is not None and next(_below(folder), None):
        return needed
    if not _is_project(folder):
        return None
    places = _test_places(folder)
    for place in places:
        if place.has("conftest.py"):
            return _test_evidence(folder, place, "conftest.py")
    files = [found for place in places for found in _below(place, deep=place is not folder)][:_READ_TESTS]
    for place, file in files:
        if re.search(_IMPORTS.format("pytest"), place.text(file), re.MULTILINE):
            return _test_evidence(folder, place, file, "pytest")
    if files and not any(_uses_unittest(place, file) for place, file in files):
        return _test_evidence(folder, *files[0])
    return None


def _uses_unittest(place: Folder, file: str) -> bool:
    return bool(re.search(_IMPORTS.format("(unittest|django)"), place.text(file), re.MULTILINE))


def _test_evidence(folder: Folder, place: Folder, file: str, imported: str = "") -> Evidence:
    """Evidence that is a file in a folder, or below it."""
    path = (place.path / file).relative_to(folder.path).as_posix()
    line = place.line(file, _IMPORTS.format(imported)) if imported else 0
    why = f"{folder.label(path)} imports {imported}" if imported else folder.label(path)
    return Evidence(file=path, line=line, why=why, strong=False)


def _is_project(folder: Folder) -> bool:
    """Whether tests in here, of which nothing else tells, belong to a project of its own."""
    return folder.parent is None or bool(folder.first(*PROJECT_FILES))


def _test_places(folder: Folder) -> list[Folder]:
    return [folder, *(folder.children[name] for name in ("tests", "test") if name in folder.children)]


def _below(folder: Folder, pattern: re.Pattern[str] = _TEST_FILE, *, deep: bool = True) -> Iterator[tuple[Folder, str]]:
    """The files of tests in a folder and, where ``deep``, anywhere below."""
    yield from ((folder, name) for name in sorted(folder.files) if pattern.fullmatch(name))
    if deep:
        for child in folder.children.values():
            yield from _below(child, pattern)
