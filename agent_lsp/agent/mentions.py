"""``@path`` in a prompt: the files that the user means, with their text, for the model.

Invariant: only files of the workspace that may be read are shown; a mention of anything else stays the text that it is.
"""

import re
from collections.abc import Iterator

from agent_lsp.agent.agent import Agent
from agent_lsp.errors import ToolError
from agent_lsp.messages import UserMessage, system_reminder
from agent_lsp.tools.base import ToolContext
from agent_lsp.tools.read import READ_FILE, ReadFile
from agent_lsp.workspace import ResolvedPath

MAX_FILES = 20
MAX_CHARACTERS = 200_000
"""Of all files of one prompt together."""

_MENTION = re.compile(r"""(?<![\w`@/.])@(?:"([^"\n]+)"|([^\s"'`<>()\[\]{},;]+))""")
_BEHIND = ".,:;!?…"


def mentioned(agent: Agent, prompt: str) -> list[ResolvedPath]:
    """The files that a prompt names, each once, in its order."""
    found = {path.path: path for spelling in _spellings(prompt) if (path := _file(agent, spelling)) is not None}
    return list(found.values())[:MAX_FILES]


def _spellings(prompt: str) -> Iterator[str]:
    for match in _MENTION.finditer(prompt):
        if match[1]:
            yield match[1]
        else:
            yield from dict.fromkeys((match[2], match[2].rstrip(_BEHIND)))


def _file(agent: Agent, spelling: str) -> ResolvedPath | None:
    """The file of the workspace that a spelling names."""
    try:
        path = agent.workspace.resolve(spelling)
        return path if path.inside and path.path.is_file() else None
    except (OSError, ToolError):
        return None


async def shown(agent: Agent, paths: list[ResolvedPath]) -> tuple[UserMessage, ...]:
    """The text of files as one message of ours, as ``read_file`` would give it."""
    parts, left = list[str](), MAX_CHARACTERS
    for path in paths:
        text = await _text(agent, path)
        if len(text) > left:
            text = "not shown, the files before it fill the room; read it if you need it"
        left -= len(text)
        parts.append(f"{path.display}:\n{text}")
    if not parts:
        return ()
    listed = "\n\n".join(parts)
    return (UserMessage(content=system_reminder(f"The files that the user mentions:\n\n{listed}"), injected=True),)


async def _text(agent: Agent, path: ResolvedPath) -> str:
    if not agent.policy.may_read(path):
        return "not shown, a rule denies reading it"
    context = ToolContext(
        call_id="",
        workspace=agent.workspace,
        documents=agent.documents,
        environment=agent.environment,
        may_read=agent.policy.may_read,
        output=lambda _text: None,
    )
    try:
        return (await READ_FILE.run(ReadFile(path=str(path.path)), context)).content
    except ToolError as error:
        return f"not shown, {error.message}"
