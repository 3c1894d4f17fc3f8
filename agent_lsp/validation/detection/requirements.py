"""The packages that a Python project asks for, wherever it may say so."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_lsp.validation.detection.evidence import Evidence
from agent_lsp.validation.detection.tree import Folder, section, strings

PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "manage.py")
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)")
_REQUIREMENTS = re.compile(r"(.*[-_.])?requirements([-_.].*)?\.(txt|in)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A list of requirements: where it stands, and whose it is."""

    file: str
    title: str
    requirements: Iterable[str]
    group: str = ""
    extra: bool = False
    hatch: bool = False


def required(folder: Folder, *names: str) -> Evidence | None:
    """Where a project asks for one of some packages."""
    found = next(_matches(folder, names), None)
    if found is None:
        return None
    listed, name = found
    where = f"{listed.title} in " if listed.title else ""
    return Evidence(
        file=listed.file,
        line=folder.line(listed.file, rf"""(?i)^([^#]*["'\s,\[(])?{name.replace("-", "[-_.]+")}(?![\w.-])"""),
        why=f"{name} in {where}{folder.label(listed.file)}",
        strong=False,
    )


def uv_options(folder: Folder, name: str) -> tuple[str, ...]:
    """What makes uv install the group, or the extra, that a package is in; it installs the group dev by itself."""
    groups = [listed for listed, _name in _matches(folder, (name,)) if not listed.hatch]
    if not groups or (groups[0].group == "dev" and not groups[0].extra) or not _NAME.fullmatch(groups[0].group):
        return ()
    return ("--extra" if groups[0].extra else "--group", groups[0].group)


def hatch_environment(folder: Folder, name: str) -> str:
    """The environment of hatch that has a package, or nothing."""
    groups = (listed.group for listed, _name in _matches(folder, (name,)) if listed.hatch)
    return next(filter(_NAME.fullmatch, groups), "")


def _matches(folder: Folder, names: Iterable[str]) -> Iterator[tuple[_Listed, str]]:
    for listed in _lists(folder):
        for requirement in listed.requirements:
            found = _NAME.match(requirement.lstrip())
            name = re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""
            if name in names:
                yield listed, name


def _lists(folder: Folder) -> Iterator[_Listed]:
    yield from _pyproject(folder)
    pipfile = folder.toml("Pipfile")
    for title in ("dev-packages", "packages"):
        yield _Listed(file="Pipfile", title=f"[{title}]", requirements=section(pipfile, title))
    setup = folder.ini("setup.cfg")
    for lines in (*section(setup, "options.extras_require").values(), section(setup, "options").get("tests_require")):
        if isinstance(lines, str):
            yield _Listed(file="setup.cfg", title="", requirements=re.split(r"[\n;]", lines))
    quoted = re.findall(r"""["']([A-Za-z0-9][\w.\-]*+)[^"'\n]*+["']""", folder.text("setup.py"))
    yield _Listed(file="setup.py", title="", requirements=quoted)
    for file in sorted(filter(_REQUIREMENTS.fullmatch, folder.files)):
        yield _Listed(file=file, title="", requirements=folder.text(file).split("\n"))
    inner = folder.children.get("requirements")
    for file in sorted(inner.files) if inner is not None else ():
        if file.endswith((".txt", ".in")):
            path = f"requirements/{file}"
            yield _Listed(file=path, title="", requirements=folder.text(path).split("\n"))


def _pyproject(folder: Folder) -> Iterator[_Listed]:
    file = "pyproject.toml"
    document = folder.toml(file)
    tool = section(document, "tool")
    for group, items in section(document, "dependency-groups").items():
        title = f"dependency group {group}"
        yield _Listed(file=file, title=title, requirements=strings(items), group=group)
    for extra, items in section(document, "project", "optional-dependencies").items():
        yield _Listed(file=file, title=f"extra {extra}", requirements=strings(items), group=extra, extra=True)
    plain = strings(section(document, "project").get("dependencies"))
    yield _Listed(file=file, title="dependencies", requirements=plain)
    for items in (section(tool, "uv").get("dev-dependencies"), *section(tool, "pdm", "dev-dependencies").values()):
        yield _Listed(file=file, title="dev-dependencies", requirements=strings(items))
    poetry = section(tool, "poetry")
    groups = section(poetry, "group")
    for table in (*(section(groups, name, "dependencies") for name in groups), section(poetry, "dev-dependencies")):
        yield _Listed(file=file, title="development dependencies", requirements=table)
    yield _Listed(file=file, title="dependencies", requirements=section(poetry, "dependencies"))
    for name in section(tool, "hatch", "envs"):
        table = section(tool, "hatch", "envs", name)
        items = [*strings(table.get("dependencies")), *strings(table.get("extra-dependencies"))]
        title = f"hatch environment {name}"
        yield _Listed(file=file, title=title, requirements=items, group=name, hatch=True)
