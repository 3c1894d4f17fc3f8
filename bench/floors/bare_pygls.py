"""The floor of P1: a pygls server with no features."""

from pygls.lsp.server import LanguageServer

LanguageServer("bare", "1").start_io()
