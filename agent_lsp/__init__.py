"""An AI coding agent for any editor, through the language server protocol.

The map: a module imports only from the rooms above its own, and domains do not import one another, with
the exceptions stated (``tests/test_architecture.py`` holds this table)::

    values     errors messages workspace approvals redaction terminal_text process_output processes
    domains    models tools permissions hooks validation   (hooks may read tools.base and models)
    engine     agent
    assembly   settings session
    fronts     lsp cli

One prompt is one straight line: a front hands text to a session; the agent loop streams the model's answer;
each tool call is prepared, shown to hooks, judged, approved, guarded, run and shown to hooks again
(``agent/calls.py``); results go back to the model until it stops. Beside that line there are two doors:
``emit(AgentEvent)`` out, and ``Approver.ask(request)`` to the human.
"""

__version__ = "0.1.0"
