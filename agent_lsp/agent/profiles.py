"""The fixed profiles: which capabilities a session of a given level has (A61).

A profile is recognised by identity, so a look-alike object cannot claim a capability (A63).
"""

from dataclasses import dataclass

from agent_lsp.errors import ConfigurationError


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One level and what it can do. Only the instances below count."""

    level: int
    capabilities: frozenset[str]


_LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"loop", "shell"}),
    frozenset({"tool_registry", "files"}),
    frozenset({"policy"}),
    frozenset({"hooks"}),
)

PROFILES: tuple[Profile, ...] = tuple(
    Profile(level, frozenset().union(*_LEVELS[:level])) for level in range(1, len(_LEVELS) + 1)
)


PRODUCT = Profile(len(_LEVELS) + 1, frozenset({"validation", "sessions", "subagents"}).union(*_LEVELS))
"""What a session has where no chapter is asked for."""


def profile(level: int) -> Profile:
    """The fixed profile of a level. Raises ConfigurationError for a level that does not exist."""
    for candidate in PROFILES:
        if candidate.level == level:
            return candidate
    known = ", ".join(str(candidate.level) for candidate in PROFILES)
    raise ConfigurationError(f"There is no chapter {level}; chapters are {known}")


def require_fixed(candidate: object) -> Profile:
    """Refuse anything that is not one of the fixed profile objects (A63)."""
    for fixed in (*PROFILES, PRODUCT):
        if candidate is fixed:
            return fixed
    raise ConfigurationError("profile must be a fixed chapter profile")
