"""Merges the layers of settings, later ones over earlier ones, value by value (S2).

Invariants: a bad value is reported with its place and left out, it never stops anything and never widens a
permission; a file that cannot be read locks the permissions, because a deny rule may stand in it; a workspace
never says which model is used (F71), and widens permissions only where it is trusted (F70).
"""

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.permissions.rules import Rule, parse_rule
from agent_lsp.settings.file import Place, SettingsFile, read_settings_file
from agent_lsp.settings.schema import LATER, SECTIONS, Settings

RULE_LISTS = {
    "deny": PermissionBehavior.DENY,
    "ask": PermissionBehavior.ASK,
    "allow": PermissionBehavior.ALLOW,
}
_ADDING = ("deny", "ask", "allow", "additional_directories")
_WIDENING_MODES = ("accept_edits", "bypass")


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
        return self.places.get(key) or Place(source=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The merged settings. ``provenance`` maps each set key to the place of the value that won.

    ``locked`` says that a layer could not be read: then no rule, grant or mode may allow what would ask.
    """

    settings: Settings
    rules: tuple[Rule, ...] = ()
    problems: tuple[Problem, ...] = ()
    provenance: Mapping[str, Place] = field(default_factory=dict)
    locked: bool = False
    api_key: str | None = field(default=None, repr=False)


def load_settings(
    workspace_root: Path,
    *,
    user_directory: Path,
    editor: Mapping[str, Any] | None = None,
    command_line: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    trusted: bool = False,
) -> LoadedSettings:
    """Read and merge all layers. Never raises for what stands in them.

    ``user_directory`` holds the user's ``settings.json``. ``editor`` and ``command_line`` are settings objects of
    the same shape as the files.
    """
    merge = _Merge(trusted=trusted)
    project = workspace_root / ".agent-lsp"
    merge.add_file("user settings", user_directory / "settings.json", from_workspace=False)
    merge.add_file("project settings", project / "settings.json", from_workspace=True)
    merge.add_file("local settings", project / "settings.local.json", from_workspace=True)
    for name, values in (
        ("editor settings", editor),
        ("environment", _environment(environ)),
        ("command line", command_line),
    ):
        merge.add(Layer(name=name, values=values or {}))
    return merge.finish(environ)


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    named = {"name": environ.get("AGENT_LSP_MODEL"), "base_url": environ.get("OPENAI_BASE_URL")}
    return {"model": {key: value for key, value in named.items() if value}}


class _Merge:
    """The settings so far, while layers are added from the weakest to the strongest."""

    def __init__(self, *, trusted: bool) -> None:
        self._trusted = trusted
        self._values: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
        self._rules: list[Rule] = []
        self._problems: list[Problem] = []
        self._provenance: dict[str, Place] = {}
        self._locked = False

    def add_file(self, name: str, path: Path, *, from_workspace: bool) -> None:
        read = read_settings_file(path)
        if isinstance(read, SettingsFile):
            for key, place in read.duplicates:
                self._problems.append(
                    Problem(place=place, key=key, message="the key stands twice; the last one counts")
                )
            self.add(Layer(name=str(path), values=read.values, places=read.places, from_workspace=from_workspace))
        elif read is not None:
            self._locked = True
            self._problems.append(
                Problem(
                    place=read.place,
                    key="",
                    message=f"the {name} cannot be read, nothing is allowed unasked: {read.message}",
                )
            )

    def add(self, layer: Layer) -> None:
        for section, values in layer.values.items():
            if section in LATER:
                continue
            if section not in SECTIONS:
                self._report_unknown(layer, section, (*SECTIONS, *LATER))
            elif section == "model" and layer.from_workspace:
                self._report(layer, section, "ignored: a workspace does not say which model, endpoint or key is used")
            elif not isinstance(values, Mapping):
                self._report(layer, section, f"expected an object, found {_kind(values)}")
            else:
                for key, value in values.items():
                    self._add_value(layer, section, key, value)

    def _add_value(self, layer: Layer, section: str, key: str, value: Any) -> None:
        name = f"{section}.{key}"
        fields = SECTIONS[section].model_fields
        if key not in fields:
            self._report_unknown(layer, name, tuple(f"{section}.{known}" for known in fields))
        elif section == "permissions" and key in _ADDING:
            self._add_entries(layer, key, value)
        elif self._is_valid(layer, name, value) and not self._widens_untrusted(layer, name, value):
            self._values[section][key] = value
            self._provenance[name] = layer.place(name)

    def _is_valid(self, layer: Layer, name: str, value: Any) -> bool:
        section, key = name.split(".")
        described = SECTIONS[section].model_fields[key]
        try:
            SECTIONS[section].model_validate({key: value})
        except ValidationError as error:
            expected = "; ".join(item["msg"] for item in error.errors(include_url=False))
            self._report(layer, name, f"{expected}{f' ({described.description})' if described.description else ''}")
            return False
        return True

    def _add_entries(self, layer: Layer, key: str, value: Any) -> None:
        """Lists add up; an entry that is no rule is reported, and denies where it was meant to deny."""
        entries = value if isinstance(value, list | tuple) else [value]
        if entries is not value and not isinstance(value, list | tuple):
            self._report(layer, f"permissions.{key}", f"expected a list of strings, found {_kind(value)}")
        for index, entry in enumerate(entries):
            name = f"permissions.{key}.{index}"
            if key in RULE_LISTS:
                self._add_rule(layer, name, RULE_LISTS[key], entry)
            elif not isinstance(entry, str):
                self._report(layer, name, f"expected a path, found {_kind(entry)}")
            elif not self._widens_untrusted(layer, name, entry):
                self._values["permissions"].setdefault(key, []).append(entry)

    def _add_rule(self, layer: Layer, name: str, behavior: PermissionBehavior, entry: Any) -> None:
        rule = parse_rule(behavior, entry if isinstance(entry, str) else "", str(layer.place(name)))
        if rule.problem is not None:
            effect = (
                " (until it is mended it denies all that it could mean)" if behavior is PermissionBehavior.DENY else ""
            )
            self._report(layer, name, f"{rule.problem.value}{effect}")
        if behavior is not PermissionBehavior.ALLOW or not self._widens_untrusted(layer, name, entry):
            self._rules.append(rule)

    def _widens_untrusted(self, layer: Layer, name: str, value: Any) -> bool:
        """Whether a workspace that is not trusted tries to widen what may run unasked; reported if so."""
        widening = name.startswith(("permissions.allow", "permissions.additional_directories")) or (
            name == "permissions.mode" and value in _WIDENING_MODES
        )
        guarded = widening or name in ("permissions.answer_guard_ms", "agent.builtin_hooks")
        if not (guarded and layer.from_workspace and not self._trusted):
            return False
        self._report(layer, name, "ignored: this workspace is not trusted, so it cannot widen permissions")
        return True

    def _report(self, layer: Layer, key: str, message: str) -> None:
        self._problems.append(Problem(place=layer.place(key), key=key, message=message))

    def _report_unknown(self, layer: Layer, key: str, known: Iterable[str]) -> None:
        near = difflib.get_close_matches(key, list(known), n=1)
        self._report(layer, key, f"unknown setting{f'; did you mean {near[0]}?' if near else ''}")

    def finish(self, environ: Mapping[str, str]) -> LoadedSettings:
        settings = TypeAdapter(Settings).validate_python(self._values)
        return LoadedSettings(
            settings=settings,
            rules=tuple(self._rules),
            problems=tuple(self._problems),
            provenance=self._provenance,
            locked=self._locked,
            api_key=environ.get(settings.model.api_key_env) or None,
        )


def _kind(value: object) -> str:
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)
