"""A session is one history and the agent that continues it; ``assemble`` is the one place where objects are wired."""
