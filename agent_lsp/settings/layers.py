"""The layers of settings as they are read, each value with its place; what they mean is ``load``'s business.

Without pydantic, because listing hooks must not cost more than reading the files.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agent_lsp.hooks.settings import ConfiguredHook, parse_hooks
from agent_lsp.settings.file import SettingsFile, read_settings_file
from agent_lsp.workspace import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong in a layer; ``key`` is the dotted path of the setting."""

    place: Place
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key + ': ' if self.key else ''}{self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One source of settings: its values, and where each dotted key stands in it."""

    name: str
    values: Mapping[str, Any]
    places: Mapping[str, Place] = field(default_factory=dict)
    from_workspace: bool = False

    def place(self, key: str) -> Place:
        """Where a key stands; for one that is missing, where it would belong."""
        while key and key not in self.places:
            key = key.rpartition(".")[0]
        return self.places.get(key) or Place(source=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """All sources, the weakest first. ``locked`` says that a file could not be read."""

    layers: tuple[Layer, ...]
    problems: tuple[Problem, ...] = ()
    locked: bool = False


def read_layers(
    workspace_root: Path,
    *,
    user_directory: Path,
    editor: Sequence[Mapping[str, Any]] = (),
    command_line: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Layers:
    """Read all sources in the order of S2. Never raises for what stands in them."""
    project = workspace_root / ".agent-lsp"
    layers: list[Layer] = []
    problems: list[Problem] = []
    locked = False
    for name, path, from_workspace in (
        ("user settings", user_directory / "settings.json", False),
        ("project settings", project / "settings.json", True),
        ("local settings", project / "settings.local.json", True),
    ):
        read = read_settings_file(path)
        if isinstance(read, SettingsFile):
            layers.append(Layer(name=str(path), values=read.values, places=read.places, from_workspace=from_workspace))
            for key, place in read.duplicates:
                problems.append(Problem(place=place, key=key, message="the key stands twice; the last one counts"))
                locked = locked or key.partition(".")[0] in ("permissions", "hooks")  # what was lost may have denied
        elif read is not None:
            locked = True
            message = f"the {name} cannot be read, nothing is allowed unasked: {read.message}"
            problems.append(Problem(place=read.place, key="", message=message))
    for name, values in (
        *(("editor settings", values) for values in editor),
        ("environment", _environment(environ)),
        ("command line", command_line),
    ):
        layers.append(Layer(name=name, values=values or {}))
    return Layers(layers=tuple(layers), problems=tuple(problems), locked=locked)


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    named = {"name": environ.get("AGENT_LSP_MODEL"), "base_url": environ.get("OPENAI_BASE_URL")}
    return {"model": {key: value for key, value in named.items() if value}}


def configured_hooks(layers: Layers) -> tuple[tuple[ConfiguredHook, ...], tuple[Problem, ...]]:
    """The hooks of all layers, which add up, and what is wrong with those that are left out."""
    hooks: list[ConfiguredHook] = []
    problems: list[Problem] = []
    for layer in layers.layers:
        if "hooks" in layer.values:
            hooks += parse_hooks(layer.values["hooks"], layer.place, partial(_report, layer, problems))
    return tuple(hooks), tuple(problems)


def _report(layer: Layer, problems: list[Problem], key: str, message: str) -> None:
    problems.append(Problem(place=layer.place(key), key=key, message=message))
