"""One editor, many prompts, and everything at random: ``python -m bench.soak``."""
