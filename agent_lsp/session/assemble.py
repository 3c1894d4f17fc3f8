"""The composition root: settings and options in, a session out. The one place where objects are wired."""

import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agent_lsp.agent.agent import Agent
from agent_lsp.agent.events import PermissionDecided
from agent_lsp.agent.instructions import Instructions
from agent_lsp.agent.profiles import PRODUCT, Profile, profile, require_fixed
from agent_lsp.agent.prompt import system_prompt
from agent_lsp.agent.subagents import current_agent, spawn_agent_tool
from agent_lsp.approvals import ApprovalReply, ApprovalRequest, Approver
from agent_lsp.errors import ConfigurationError
from agent_lsp.hooks.builtin import install_builtin, plan_guard
from agent_lsp.hooks.contract import HookEvent
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.hooks.trust import Trust
from agent_lsp.models.base import Model
from agent_lsp.models.memory import ModelMemory
from agent_lsp.models.openai_chat import OpenAIChatModel
from agent_lsp.models.settings import OPENAI_BASE_URL, OpenAIChatSettings, Prices
from agent_lsp.permissions.grants import Grants, grants_directory
from agent_lsp.permissions.policy import PermissionMode, Policy
from agent_lsp.redaction import secrets_of
from agent_lsp.session.directories import config_directory, state_directory, trust_store
from agent_lsp.session.history import History
from agent_lsp.session.hooks import ConfiguredHooks
from agent_lsp.session.programs import Programs
from agent_lsp.session.records import Replay
from agent_lsp.session.session import EventStream, Session
from agent_lsp.session.store import SessionStore
from agent_lsp.session.stored import StoredSessions
from agent_lsp.session.validation import Validation
from agent_lsp.settings.load import LoadedSettings, load_settings
from agent_lsp.settings.trust import TrustEverything
from agent_lsp.tools.base import AnyTool, PreparedCall
from agent_lsp.tools.builtin import BUILTIN_TOOLS
from agent_lsp.tools.diagnostics import DIAGNOSTICS
from agent_lsp.tools.registry import ToolRegistry
from agent_lsp.tools.task import TaskList, task_tools
from agent_lsp.workspace import Access, Documents, NoDocuments, Workspace

_audit = logging.getLogger("agent_lsp.audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """What a front decides; everything else comes from settings.

    ``model`` replaces the endpoint (demo, tests). ``hooks`` registers in-process hooks and needs a profile with that
    capability. ``audit`` hears every permission verdict. ``resume`` is the id of a stored session to go on with;
    without ``keep`` nothing is stored. ``folders`` are the workspace's further ones and
    ``editor_settings`` the editor's layers, the weaker first; both are read again at each prompt. ``user_directory``
    holds the user's settings where it is not the platform's.
    """

    root: Path
    approver: Approver | None
    resume: str | None = None
    folders: Sequence[Path] = ()
    level: int | None = None
    profile: Profile | None = None
    model: Model | None = None
    model_name: str | None = None
    mode: str | None = None
    max_turns: int | None = None
    trusted: bool = False
    validate: bool = True
    keep: bool = True
    hooks: Callable[[HookRegistry], None] | None = None
    documents: Documents = field(default_factory=NoDocuments)
    editor_settings: Sequence[Mapping[str, Any]] = ()
    user_directory: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    audit: Callable[[PermissionDecided], None] | None = lambda event: _audit.info(
        "%s: %s (%s)", event.tool, event.behavior, event.source
    )


def open_session(options: SessionOptions) -> Session:
    """Wire a session. Raises ConfigurationError before anything is built or run if it cannot work.

    A model is missed by the first prompt, not here: validation needs none.
    """
    chosen = _checked_profile(options)
    trust = TrustEverything() if options.trusted else trust_store()

    load = _loader(options, trust)
    loaded = load()
    workspace = Workspace(options.root)
    policy = Policy(workspace=workspace, grants=Grants(grants_directory(state_directory(), workspace.root)))
    events = EventStream()
    session_id = options.resume or uuid.uuid4().hex
    approver = options.approver or _NoApprover()
    programs = Programs(
        workspace.root,
        session_id,
        trust=trust,
        approver=approver,
        load=load,
        emit=events.emit,
        documents=options.documents,
    )
    configured = ConfiguredHooks(programs.runner, workspace.root)
    tasks = TaskList(watcher=configured.watch_task)
    has_editor = not isinstance(options.documents, NoDocuments)
    tools = ToolRegistry(_tools(chosen, tasks, lambda: session.agent, has_editor=has_editor))
    models = _Models(options.model)
    validation = programs.validation if "validation" in chosen.capabilities and options.validate else None
    has_hooks = "hooks" in chosen.capabilities
    instructions = Instructions(workspace, may_read=policy.may_read, reader=current_agent.get)
    events.subscribe(instructions.note)
    store = SessionStore(state_directory(), workspace.root)
    history = _history(options, chosen, store, session_id)
    history.keep_changes(workspace, options.documents)
    history.keep_tasks(tasks)
    history.clean_up = lambda: StoredSessions(store).prune(session.settings.sessions.keep_days)
    programs.validation.recorder = history.recorder
    configured.changed = history.refresh
    history.hide([*secrets_of(options.environ), loaded.api_key or ""])

    def configure(loaded: LoadedSettings) -> None:
        """Let settings hold for what lives as long as the session and needs no model."""
        folders = [folder for folder in options.folders if folder.is_dir()]
        workspace.set_additional([*folders, *map(Path, loaded.settings.permissions.additional_directories)])
        theirs = loaded.hooks if has_hooks else ()
        programs.configure(loaded, options.environ, lambda: models.get(loaded), hooks=theirs)

    def build(loaded: LoadedSettings) -> Agent:
        """The agent that these settings describe."""
        instructions.names = loaded.settings.agent.instructions if chosen is PRODUCT else ()
        return Agent(
            model=models.get(loaded),
            system=system_prompt(workspace) + instructions.standing(),
            tools=tools,
            policy=policy,
            approver=approver,
            audit=options.audit or _silent,
            hooks=_hooks(options, loaded, policy, configured, validation, instructions) if has_hooks else None,
            workspace=workspace,
            emit=events.emit,
            documents=options.documents,
            recorder=history.recorder,
            environment=programs.environment,
            max_turns=loaded.settings.agent.max_turns,
            instructions=instructions,
            open_tasks=tasks.open_ones,
        )

    session = Session(
        session_id,
        events,
        policy,
        configured,
        validation,
        history,
        loaded=loaded,
        load=load,
        configure=configure,
        build=build,
    )
    return session


def _history(options: SessionOptions, chosen: Profile, store: SessionStore, session_id: str) -> History:
    """What the session remembers, from its file where one is resumed."""
    if "sessions" in chosen.capabilities and options.keep:
        if options.resume is not None:
            return History(*store.resume(session_id))
        return History(store.begin(session_id), Replay())
    if options.resume is not None:
        raise ConfigurationError("sessions are kept by the whole product, not by a chapter of it")
    return History(None, Replay())


def _loader(options: SessionOptions, trust: Trust) -> Callable[[], LoadedSettings]:
    """What reads all layers of settings anew."""
    command_line = _command_line(options)
    return lambda: load_settings(
        options.root.resolve(),
        user_directory=options.user_directory or config_directory(),
        trust=trust,
        editor=options.editor_settings,
        command_line=command_line,
        environ=options.environ,
    )


class _Models:
    """The model of a session: made anew only where its settings change, because it holds connections."""

    def __init__(self, fixed: Model | None) -> None:
        self._fixed = fixed
        self._endpoint: OpenAIChatModel | None = None

    def get(self, loaded: LoadedSettings) -> Model:
        if self._fixed is not None:
            return self._fixed
        settings = endpoint_settings(loaded)
        if self._endpoint is None or self._endpoint.settings != settings:
            self._endpoint = endpoint_model(settings)
        return self._endpoint


def _checked_profile(options: SessionOptions) -> Profile:
    """The profile, fit for what is injected (A62, A63, A65)."""
    chosen = options.profile or (PRODUCT if options.level is None else profile(options.level))
    require_fixed(chosen)
    if options.hooks is not None and "hooks" not in chosen.capabilities:
        raise ConfigurationError("hooks require chapter 4 or later")
    if "policy" in chosen.capabilities and (options.approver is None or options.audit is None):
        raise ConfigurationError("chapter 3 and later need an approver and an audit sink")
    return chosen


def _tools(chosen: Profile, tasks: TaskList, agent: Callable[[], Agent], *, has_editor: bool) -> Iterator[AnyTool]:
    """The tools that a profile offers, and what only an editor can tell."""
    for tool in BUILTIN_TOOLS:
        if tool.name == "shell" or "files" in chosen.capabilities:
            yield tool
    if has_editor:
        yield DIAGNOSTICS
    if "subagents" in chosen.capabilities:
        yield from task_tools(tasks)
        yield spawn_agent_tool(agent)


def _command_line(options: SessionOptions) -> dict[str, Any]:
    """The options of a front as the strongest layer of settings."""
    given: dict[str, dict[str, Any]] = {
        "model": {"name": options.model_name},
        "permissions": {"mode": options.mode},
        "agent": {"max_turns": options.max_turns},
    }
    if options.mode is not None:
        parse_mode(options.mode)
    if options.max_turns is not None and options.max_turns < 1:
        raise ConfigurationError("--max-turns must be at least 1")
    return {
        section: kept
        for section, values in given.items()
        if (kept := {key: value for key, value in values.items() if value is not None})
    }


def parse_mode(text: str) -> PermissionMode:
    """A permission mode by name. Raises ConfigurationError that lists the names."""
    try:
        return PermissionMode(text)
    except ValueError:
        known = ", ".join(mode.value for mode in PermissionMode)
        raise ConfigurationError(f"There is no permission mode {text!r}; known are {known}") from None


def _hooks(
    options: SessionOptions,
    loaded: LoadedSettings,
    policy: Policy,
    configured: ConfiguredHooks,
    validation: Validation | None,
    instructions: Instructions,
) -> HookRegistry:
    """All hooks, the in-process ones before the configured ones (R1)."""
    registry = HookRegistry()
    registry.register(HookEvent.PRE_TOOL_USE, instructions.before_call, name="instructions")
    install_builtin(registry, loaded.settings.agent.builtin_hooks, options.root)
    registry.register_guard(
        "plan-mode", lambda prepared: plan_guard(prepared) if policy.mode is PermissionMode.PLAN else None
    )
    if options.hooks is not None:
        options.hooks(registry)
    configured.install(registry)
    if validation is not None:
        registry.register_guard("baseline", partial(_keep_baseline, validation))
    return registry


async def _keep_baseline(validation: Validation, prepared: PreparedCall) -> None:
    """A guard that denies nothing: it stands where a change is about to happen."""
    if prepared.definition.access in (Access.WRITE, Access.EXECUTE):
        await validation.before_change()


def endpoint_model(settings: OpenAIChatSettings) -> OpenAIChatModel:
    """The model at an endpoint, with what earlier sessions have found out about it."""
    return OpenAIChatModel(settings, ModelMemory(state_directory() / "models", settings.base_url, settings.name))


def endpoint_settings(loaded: LoadedSettings) -> OpenAIChatSettings:
    """The configured model server. A key is needed unless another server than the default one was chosen."""
    model = loaded.settings.model
    if model.name is None:
        raise ConfigurationError(
            "No model is set; give --model NAME, set AGENT_LSP_MODEL, or set model.name in "
            f"{config_directory() / 'settings.json'}"
        )
    if loaded.api_key is None and model.base_url is None:
        raise ConfigurationError(
            f"No API key: {model.api_key_env} is not set. Set it (or model.api_key_env to the variable that holds the "
            "key), or set OPENAI_BASE_URL or model.base_url to a server that needs none"
        )
    return OpenAIChatSettings(
        name=model.name,
        base_url=model.base_url or OPENAI_BASE_URL,
        api_key=loaded.api_key,
        max_output_tokens=model.max_output_tokens,
        temperature=model.temperature,
        reasoning_effort=model.reasoning_effort,
        quirks={str(name): value for name, value in model.quirks.items()},
        context_window=model.context_window,
        prices=None if model.prices is None else Prices(**model.prices.model_dump()),
    )


class _NoApprover:
    """Stands in below the policy profile, where nobody is asked."""

    async def ask(self, request: ApprovalRequest) -> ApprovalReply:
        return ApprovalReply(allowed=False, feedback="no approver")


def _silent(_event: PermissionDecided) -> None:
    """The audit sink below the policy profile."""
