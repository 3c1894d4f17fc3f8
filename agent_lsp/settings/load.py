"""Merges the layers of settings, later ones over earlier ones, value by value (S2).

Invariants: a bad value is reported with its place and left out, it never stops anything and never widens a
permission; a file that cannot be read locks the permissions, because a deny rule may stand in it; a workspace
never says which model is used (F71), and widens permissions only where it is trusted (F70).
"""

import difflib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.hooks.builtin import BUILTIN_HOOKS
from agent_lsp.hooks.settings import ConfiguredHook
from agent_lsp.hooks.trust import Trust, TrustItem, hook_item
from agent_lsp.permissions.rules import Rule, parse_rule
from agent_lsp.settings.layers import Layer, Problem, configured_hooks, read_layers
from agent_lsp.settings.schema import LATER, SECTIONS, Settings, ValidatorEntry
from agent_lsp.settings.trust import validator_item
from agent_lsp.validation.validator import Validator
from agent_lsp.workspace import Place

RULE_LISTS = {
    "deny": PermissionBehavior.DENY,
    "ask": PermissionBehavior.ASK,
    "allow": PermissionBehavior.ALLOW,
}
_ADDING = ("deny", "ask", "allow", "additional_directories")
_WIDENING = (
    "permissions.allow",
    "permissions.additional_directories",
    "permissions.answer_guard_ms",
    "agent.builtin_hooks",
    "hooks_http_allow",
)


def _is_widening_mode(name: str, value: object) -> bool:
    return name == "permissions.mode" and value in ("accept_edits", "bypass")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The merged settings. ``provenance`` maps each set key to the place of the value that won.

    ``trust_items`` are what the settings would execute, and what a workspace's would widen. ``locked`` says that a
    layer could not be read: then no rule, grant or mode may allow what would ask.
    """

    settings: Settings
    rules: tuple[Rule, ...] = ()
    hooks: tuple[ConfiguredHook, ...] = ()
    validators: tuple[Validator, ...] = ()
    problems: tuple[Problem, ...] = ()
    provenance: Mapping[str, Place] = field(default_factory=dict)
    trust_items: tuple[TrustItem, ...] = ()
    locked: bool = False
    api_key: str | None = field(default=None, repr=False)


def load_settings(
    workspace_root: Path,
    *,
    user_directory: Path,
    trust: Trust,
    editor: Sequence[Mapping[str, Any]] = (),
    command_line: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> LoadedSettings:
    """Read and merge all layers. Never raises for what stands in them.

    ``user_directory`` holds the user's ``settings.json``. ``editor`` and ``command_line`` are settings objects of
    the same shape as the files.
    """
    layers = read_layers(
        workspace_root, user_directory=user_directory, editor=editor, command_line=command_line, environ=environ
    )
    hooks, hook_problems = configured_hooks(layers)
    merge = _Merge(workspace_root, trust)
    for layer in layers.layers:
        merge.add(layer)
    settings = merge.settings()
    return LoadedSettings(
        settings=settings,
        rules=tuple(merge.rules),
        hooks=hooks,
        validators=tuple(merge.validators),
        problems=(*layers.problems, *merge.problems, *hook_problems),
        provenance=merge.provenance,
        trust_items=(
            *(hook_item(hook, workspace_root) for hook in hooks),
            *(validator_item(validator, workspace_root) for validator in merge.validators),
            *merge.widening,
        ),
        locked=layers.locked,
        api_key=environ.get(settings.model.api_key_env) or None,
    )


class _Merge:
    """The settings so far, while layers are added from the weakest to the strongest."""

    def __init__(self, root: Path, trust: Trust) -> None:
        self._root = root
        self.rules: list[Rule] = []
        self.problems: list[Problem] = []
        self.provenance: dict[str, Place] = {}
        self.widening: list[TrustItem] = []
        self.validators: list[Validator] = []
        self._trust = trust
        self._values: dict[str, Any] = {name: {} for name in SECTIONS}

    def add(self, layer: Layer) -> None:
        for section, values in layer.values.items():
            if section in LATER or section in ("hooks", "$schema"):
                continue
            if section == "hooks_http_allow":
                self._add_entries(layer, section, self._values, values)
            elif section not in SECTIONS:
                self._report_unknown(layer, section, (*SECTIONS, "hooks", "hooks_http_allow", *LATER))
            elif section == "model" and layer.from_workspace:
                self._report(layer, section, "ignored: a workspace does not say which model, endpoint or key is used")
            elif section == "sessions" and layer.from_workspace:
                self._report(layer, section, "ignored: a workspace does not say how long your sessions are kept")
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
        elif name == "validation.validators":
            self._add_validators(layer, name, value)
        elif section == "permissions" and key in _ADDING:
            self._add_entries(layer, name, self._values[section], value)
        elif self._is_valid(layer, name, value) and not self._widens_untrusted(layer, name, value):
            self._values[section][key] = self._known_hooks(layer, value) if name == "agent.builtin_hooks" else value
            self.provenance[name] = layer.place(name)

    def _add_validators(self, layer: Layer, name: str, given: Any) -> None:
        """Validators add up; one with a mistake is reported and left out."""
        if not isinstance(given, list | tuple):
            self._report(layer, name, f"expected a list of validators, found {_kind(given)}")
            return
        for index, value in enumerate(given):
            key = f"{name}.{index}"
            try:
                entry = ValidatorEntry.model_validate(value)
            except ValidationError as error:
                for item in error.errors(include_url=False):
                    where = ".".join((key, *map(str, item["loc"][:1])))
                    self._report(layer, where, f"{item['msg']}; the validator is left out")
                continue
            self.validators.append(Validator(**entry.model_dump(), place=layer.place(key)))

    def _known_hooks(self, layer: Layer, names: Sequence[str]) -> list[str]:
        """The built-in hooks that exist; the others are reported."""
        for index, name in enumerate(names):
            if name not in BUILTIN_HOOKS:
                known = ", ".join(BUILTIN_HOOKS)
                self._report(layer, f"agent.builtin_hooks.{index}", f"there is no hook {name!r}; known are {known}")
        return [name for name in names if name in BUILTIN_HOOKS]

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

    def _add_entries(self, layer: Layer, name: str, values: dict[str, Any], given: Any) -> None:
        """Lists add up; an entry that is no rule is reported, and denies where it was meant to deny."""
        key = name.rpartition(".")[2]
        is_list = isinstance(given, list | tuple)
        if not is_list:
            self._report(layer, name, f"expected a list of strings, found {_kind(given)}")
        for index, entry in enumerate(given if is_list else [given]):
            place = f"{name}.{index}"
            if key in RULE_LISTS:
                self._add_rule(layer, place, RULE_LISTS[key], entry)
            elif not isinstance(entry, str):
                self._report(layer, place, f"expected a string, found {_kind(entry)}")
            elif not self._widens_untrusted(layer, place, entry):
                if key == "additional_directories":
                    entry = self._existing_directory(layer, place, entry)
                if entry is not None:
                    values.setdefault(key, []).append(entry)

    def _existing_directory(self, layer: Layer, name: str, text: str) -> str | None:
        """A directory's path, relative ones against the workspace; one that does not exist is reported."""
        path = self._root / os.path.expanduser(text)  # noqa: PTH111 (Path's raises for a user who does not exist)
        if not os.path.isdir(path):  # noqa: PTH112 (Path's raises for a path that no system call takes)
            self._report(layer, name, f"there is no such directory: {path}")
            return None
        return str(path)

    def _add_rule(self, layer: Layer, name: str, behavior: PermissionBehavior, entry: Any) -> None:
        rule = parse_rule(behavior, entry if isinstance(entry, str) else "", str(layer.place(name)))
        if rule.problem is not None:
            effect = (
                " (until it is mended it denies all that it could mean)" if behavior is PermissionBehavior.DENY else ""
            )
            self._report(layer, name, f"{rule.problem.value}{effect}")
        if behavior is not PermissionBehavior.ALLOW or not self._widens_untrusted(layer, name, entry):
            self.rules.append(rule)

    def _widens_untrusted(self, layer: Layer, name: str, value: Any) -> bool:
        """Whether a workspace that is not trusted in this tries to widen what may run unasked; reported if so."""
        if not layer.from_workspace or not (name.startswith(_WIDENING) or _is_widening_mode(name, value)):
            return False
        key = name.rstrip("0123456789.")
        digest = hashlib.sha256(json.dumps([layer.name, key, value]).encode()).hexdigest()
        self.widening.append(
            TrustItem(text=f"{key} {json.dumps(value, ensure_ascii=False)}", place=layer.place(name), digest=digest)
        )
        if self._trust.covers(digest):
            return False
        self._report(layer, name, "ignored: this workspace is not trusted, so it cannot widen permissions")
        return True

    def _report(self, layer: Layer, key: str, message: str) -> None:
        self.problems.append(Problem(place=layer.place(key), key=key, message=message))

    def _report_unknown(self, layer: Layer, key: str, known: Iterable[str]) -> None:
        near = difflib.get_close_matches(key, list(known), n=1)
        self._report(layer, key, f"unknown setting{f'; did you mean {near[0]}?' if near else ''}")

    def settings(self) -> Settings:
        return TypeAdapter(Settings).validate_python(self._values)


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
