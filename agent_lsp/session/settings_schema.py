"""The schema of a settings file, for fronts."""

from agent_lsp.settings.json_schema import settings_schema as settings_schema
