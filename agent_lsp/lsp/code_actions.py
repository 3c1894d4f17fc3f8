"""Code actions on what this server has shown; quick, because editors ask at every move of the cursor."""

from collections.abc import Sequence

from lsprotocol import types

from agent_lsp.lsp.diagnostics import SOURCE, VALIDATION


def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
    """The actions for the diagnostics at the cursor, if the client asks for quick fixes at all."""
    if not _wants_quick_fixes(params.context.only):
        return []
    mine = [each for each in params.context.diagnostics if each.source == SOURCE and each.code == VALIDATION]
    actions = [_fix(params.text_document.uri, diagnostic) for diagnostic in mine]
    if mine:
        title = "Run validation again"
        command = types.Command(title=title, command="agent.validate", arguments=[])
        actions.append(types.CodeAction(title=title, kind=types.CodeActionKind.QuickFix, command=command))
    return actions


def _wants_quick_fixes(only: Sequence[types.CodeActionKind | str] | None) -> bool:
    quick = types.CodeActionKind.QuickFix.value
    return not only or any(quick == str(getattr(kind, "value", kind)) for kind in only)


def _fix(uri: str, diagnostic: types.Diagnostic) -> types.CodeAction:
    """Ask the agent about one diagnostic, with its place as context."""
    line = diagnostic.message.splitlines()[0] if diagnostic.message else "this"
    title = f"Ask the agent to fix this: {line[:60]}"
    start, end = diagnostic.range.start, diagnostic.range.end
    argument = {
        "prompt": f"Fix this problem and nothing else: {diagnostic.message}",
        "context": [
            {
                "uri": uri,
                "range": {
                    "start": {"line": start.line, "character": start.character},
                    "end": {"line": end.line, "character": end.character},
                },
            }
        ],
    }
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        command=types.Command(title=title, command="agent.run", arguments=[argument]),
    )
