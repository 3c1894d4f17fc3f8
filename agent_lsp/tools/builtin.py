"""The tools of the house, in the order in which the model sees them."""

from agent_lsp.tools.base import AnyTool
from agent_lsp.tools.edit import EDIT_FILE
from agent_lsp.tools.list_files import LIST_FILES
from agent_lsp.tools.read import READ_FILE
from agent_lsp.tools.search import SEARCH
from agent_lsp.tools.shell import SHELL
from agent_lsp.tools.write import WRITE_FILE

BUILTIN_TOOLS: tuple[AnyTool, ...] = (READ_FILE, WRITE_FILE, EDIT_FILE, LIST_FILES, SEARCH, SHELL)
