"""What the project tells the agent: instruction files from the roots down to the folder at hand.

Invariant: a file is told once to each history, and again when that history was shortened. What lies outside of the
workspace, or may not be read, is never told.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agent_lsp.agent.events import AgentEvent, HistoryCompacted, SubagentEvent, SubagentFinished
from agent_lsp.errors import ToolError
from agent_lsp.hooks.contract import HookContext, HookResult
from agent_lsp.messages import SystemMessage, escape_reminders, system_reminder
from agent_lsp.workspace import ResolvedPath, Workspace

MAX_CHARACTERS = 32_000
"""Of one file; what is longer is cut, and says so."""

_MAX_FOLDERS = 20


class Instructions:
    """The instruction files of one workspace. ``names`` are what they are called, ``reader`` is whose history it is."""

    def __init__(
        self, workspace: Workspace, *, may_read: Callable[[ResolvedPath], bool], reader: Callable[[], str]
    ) -> None:
        self.names: Sequence[str] = ()
        self._workspace = workspace
        self._may_read = may_read
        self._reader = reader
        self._told: dict[str, set[str]] = {}

    def standing(self) -> str:
        """Those in the roots, for the standing prompt."""
        seen = set[str]()
        return "".join(f"\n\n{text}" for root in self._workspace.roots for text in self._in(root, seen))

    def below(self, paths: Sequence[ResolvedPath]) -> tuple[SystemMessage, ...]:
        """Those between the roots and some paths that were not told yet."""
        told = self._told.setdefault(self._reader(), set())
        folders = {folder: None for path in paths if path.inside for folder in self._folders(path.path)}
        texts = [text for folder in list(folders)[:_MAX_FOLDERS] for text in self._in(folder, told)]
        return tuple(SystemMessage(content=system_reminder(text)) for text in texts)

    def _folders(self, path: Path) -> list[Path]:
        """The folders between a root, which is left out, and a path, outermost first."""
        folders = [path, *path.parents] if path.is_dir() else list(path.parents)
        below = [folder for folder in folders if any(root in folder.parents for root in self._workspace.roots)]
        return below[::-1]

    def _in(self, folder: Path, told: set[str]) -> Iterator[str]:
        for name in self.names:
            try:
                path = self._workspace.resolve(str(folder / name))
                if not (path.inside and path.path.is_file() and self._may_read(path)):
                    continue
                with path.path.open(encoding="utf-8", errors="replace") as file:
                    text = file.read(MAX_CHARACTERS + 1)
            except (OSError, ToolError):
                continue
            if text.strip() and not {path.display, text} & told:
                told.update((path.display, text))
                yield _shown(path.display, text)

    def before_call(self, context: HookContext) -> HookResult:
        """A PreToolUse hook: what holds where a call is about to work."""
        spelling = None if context.prepared is None else context.prepared.arguments.get("path")
        if not isinstance(spelling, str) or not self.names:
            return HookResult()
        try:
            return HookResult(additional_context=self.below([self._workspace.resolve(spelling)]))
        except (OSError, ToolError):
            return HookResult()

    def note(self, event: AgentEvent) -> None:
        """Hear the event stream: what a history has lost must be told again."""
        match event:
            case HistoryCompacted():
                self._told.pop("", None)
            case SubagentFinished(agent=agent) | SubagentEvent(agent=agent, event=HistoryCompacted()):
                self._told.pop(agent, None)


def _shown(name: str, text: str) -> str:
    cut = f"\n[cut after {MAX_CHARACTERS:,} characters]" if len(text) > MAX_CHARACTERS else ""
    body = escape_reminders(text[:MAX_CHARACTERS].strip())
    return f"The project's own instructions, from {name}, for all that lies below its folder:\n{body}{cut}"
