"""Code actions at a place: answers to a change that waits, and the agent for whatever is wrong or selected there.

Editors ask at every move of the cursor, so nothing here is slower than the lists it is given; what an action would
run is sent with it, or, to a client that resolves commands, when it is chosen.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.capabilities import get_capability

from agent_lsp.lsp.diagnostics import APPROVAL, BLOCK, SETTINGS, SOURCE, VALIDATION, Block, part_range
from agent_lsp.lsp.server import AgentServer

if TYPE_CHECKING:
    from agent_lsp.lsp.approvals import PendingApproval

QUICK_FIX, REFACTOR = types.CodeActionKind.QuickFix.value, types.CodeActionKind.Refactor.value
KINDS = (QUICK_FIX, REFACTOR)
"""What we offer: answers and mending as quick fixes, questions about a selection as refactorings."""

_OFFERED = 20  # actions for single diagnostics; a human reads no longer list
_ABOUT_SELECTION = "Explain the selected code, and name what is wrong or risky in it. Change nothing."


def code_actions(
    server: AgentServer,
    params: types.CodeActionParams,
    path: Path | None,
    *,
    waiting: Sequence["PendingApproval"],
    blocks: Sequence[Block],
) -> list[types.CodeAction]:
    """The actions for a place in a file, of the kinds that the client asks for. ``blocks`` are those of the file."""
    actions = [
        *(_answers(params, path, waiting) if _wants(params, QUICK_FIX) else ()),
        *(_about_blocks(params, blocks) if _wants(params, QUICK_FIX) else ()),
        *(_fixes(params) if _wants(params, QUICK_FIX) else ()),
        *(_questions(params) if _wants(params, REFACTOR) else ()),
    ]
    if _resolves_commands(server):
        for action in actions:
            if action.command is not None:
                action.data, action.command = [action.command.command, action.command.arguments], None
    return actions


def resolve(action: types.CodeAction) -> types.CodeAction:
    """Add the command to an action that was sent without it; one that is not ours stays as it is."""
    match action.data:
        case [str(command), list(arguments)]:
            action.command = types.Command(title=action.title, command=command, arguments=arguments)
    return action


def _wants(params: types.CodeActionParams, kind: str) -> bool:
    """A kind includes those below it: ``refactor`` asks for ``refactor.extract`` too. Nothing asked for is all."""
    asked = [str(getattr(only, "value", only)) for only in params.context.only or ()]
    return not asked or any(only == "" or kind == only or kind.startswith(f"{only}.") for only in asked)


def _resolves_commands(server: AgentServer) -> bool:
    client = server.client_capabilities
    resolved = get_capability(client, "text_document.code_action.resolve_support.properties") or ()
    return "command" in resolved and bool(get_capability(client, "text_document.code_action.data_support"))


def _action(
    title: str,
    command: str,
    argument: dict[str, Any] | None = None,
    *,
    kind: str = QUICK_FIX,
    diagnostics: list[types.Diagnostic] | None = None,
) -> types.CodeAction:
    arguments = [] if argument is None else [argument]
    return types.CodeAction(
        title=title,
        kind=kind,
        diagnostics=diagnostics,
        command=types.Command(title=title, command=command, arguments=arguments),
    )


# --- what waits for an answer


def _answers(
    params: types.CodeActionParams, path: Path | None, waiting: Sequence["PendingApproval"]
) -> Iterator[types.CodeAction]:
    """The answers to changes at this place, and, anywhere, to calls that belong to no existing file."""
    for entry in waiting:
        change = entry.request.change
        if change is None or change.before is None:
            yield from _answers_to(entry, ())
        elif change.path.path == path:
            here = [number for number in range(len(entry.hunks)) if _meet(part_range(entry, number), params.range)]
            if here:
                yield from _answers_to(entry, here)


def _answers_to(entry: "PendingApproval", here: Sequence[int]) -> Iterator[types.CodeAction]:
    """In the order of S4: the first is harmless, because editors choose it by accident."""
    request = entry.request
    about, call = {"id": request.id}, f"{request.action.tool}: {request.target}"
    allow = {**about, "decision": "allow"}
    yield _action("Show change" if request.change is not None else "Show details", "agent.approvals.show", about)
    yield _action(f"Allow {call}", "agent.approvals.answer", allow)
    if request.rule is not None:
        yield _action(f"Allow in this session: {call}", "agent.approvals.answer", {**allow, "scope": "session"})
        yield _action(f"Always allow {request.rule}", "agent.approvals.answer", {**allow, "scope": "always"})
    if len(entry.hunks) > 1:
        for number in here:
            part = {**about, "hunk": number}
            which = f"({number + 1} of {len(entry.hunks)})"
            yield _action(f"Allow this part {which}", "agent.approvals.part", {**part, "decision": "allow"})
            yield _action(f"Leave this part out {which}", "agent.approvals.part", {**part, "decision": "deny"})
    yield _action(f"Deny {call}", "agent.approvals.answer", {**about, "decision": "deny"})


def _about_blocks(params: types.CodeActionParams, blocks: Sequence[Block]) -> Iterator[types.CodeAction]:
    if blocks and params.range.start.line == 0:
        for place in dict.fromkeys(block.place for block in blocks if block.place is not None):
            argument = {"source": place.source, "line": place.line, "column": place.column}
            yield _action("Open the hook", "agent.hooks.open", argument)
        yield _action("Dismiss", "agent.hooks.dismiss", {"uri": params.text_document.uri})


def _meet(one: types.Range, other: types.Range) -> bool:
    return one.start.line <= other.end.line and other.start.line <= one.end.line


# --- what is wrong, and what is selected


def _fixes(params: types.CodeActionParams) -> Iterator[types.CodeAction]:
    """Ask the agent to fix any server's diagnostics, but not what needs a human's answer."""
    uri, shown = params.text_document.uri, params.context.diagnostics
    theirs = [each for each in shown if each.source != SOURCE or each.code not in (APPROVAL, BLOCK, SETTINGS)]
    for diagnostic in theirs[:_OFFERED]:
        ours = diagnostic.source == SOURCE and diagnostic.code == VALIDATION
        title = f"Ask the agent to fix{' this' if ours else ''}: {_first_line(diagnostic)[:60]}"
        prompt = f"Fix this problem and nothing else: {_described(diagnostic)}"
        yield _action(title, "agent.run", prompt_argument(prompt, uri, diagnostic.range), diagnostics=[diagnostic])
    if len(theirs) > 1:
        listed = "\n".join(f"- line {each.range.start.line + 1}: {_described(each)}" for each in theirs)
        prompt = f"Fix these problems and nothing else:\n{listed}"
        yield _action(
            f"Ask the agent to fix all {len(theirs)} problems here", "agent.run", prompt_argument(prompt, uri, None)
        )
    if any(each.source == SOURCE and each.code == VALIDATION for each in theirs):
        yield _action("Run validation again", "agent.validate")


def _questions(params: types.CodeActionParams) -> Iterator[types.CodeAction]:
    if params.range.start != params.range.end:
        argument = prompt_argument(_ABOUT_SELECTION, params.text_document.uri, params.range)
        yield _action("Ask the agent about the selection", "agent.run", argument, kind=REFACTOR)


def _first_line(diagnostic: types.Diagnostic) -> str:
    return next(iter(diagnostic.message.splitlines()), "this")


def _described(diagnostic: types.Diagnostic) -> str:
    """The problem in the words of who found it, and who that was."""
    who = " ".join(
        str(part) for part in (diagnostic.source, diagnostic.code) if part not in (None, "", SOURCE, VALIDATION)
    )
    return f"{diagnostic.message} ({who})" if who else diagnostic.message


def prompt_argument(text: str, uri: str, place: types.Range | None) -> dict[str, Any]:
    """The argument of ``agent.run`` for a place."""
    if place is None:
        return {"prompt": text, "context": [{"uri": uri}]}
    start, end = place.start, place.end
    span = {
        "start": {"line": start.line, "character": start.character},
        "end": {"line": end.line, "character": end.character},
    }
    return {"prompt": text, "context": [{"uri": uri, "range": span}]}
