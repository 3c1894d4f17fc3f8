"""Text of settings, hooks and tools as one line of a terminal, in which it cannot pass for another line."""

from agent_lsp.approvals import visible


def one_line(text: object) -> str:
    """A text with line ends and characters that could mislead a reader made visible (F27)."""
    return visible(str(text)).replace("\n", "⏎")
