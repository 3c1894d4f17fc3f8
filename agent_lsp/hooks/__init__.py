"""Callbacks at fixed points of a run: ``contract`` says what they get and answer, ``registry`` runs and merges them,
``chain`` is the simple form for tool calls, ``builtin`` holds the three that come with the product."""
