"""The engine: ``loop`` runs one prompt, ``calls`` takes one tool call through its stages, ``stop`` asks the Stop
hooks, ``events`` is what is said about all of it."""
