"""The language server: the agent for any editor. Handlers translate; every decision is made elsewhere."""
