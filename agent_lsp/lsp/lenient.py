"""Reading what real clients send in ``initialize``: what does not fit the protocol's types is dropped, the rest kept.

Clients are newer than our tables (a SymbolKind 27) or careless (a clientInfo without name); neither is a reason not
to answer. The protocol says the same of unknown capabilities: ignore them.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from cattrs import BaseValidationError, Converter, transform_error
from cattrs.errors import ClassValidationError, IterableValidationError

logger = logging.getLogger(__name__)

T = TypeVar("T")


def structure_leniently(converter: Converter, value: dict[str, Any], kind: type[T], required: Mapping[str, Any]) -> T:
    """Structure an object, deleting from ``value`` what does not fit; ``required`` stands in for what must not lack.

    Raises the converter's error where even the stand-ins do not help.
    """
    while True:
        value |= {name: stand_in for name, stand_in in required.items() if name not in value}
        try:
            return converter.structure(value, kind)
        except BaseValidationError as error:
            if not _prune(value, error):
                raise


def reasons(error: Exception) -> str:
    """Why a value does not fit a type, place by place, in one line."""
    return "; ".join(transform_error(error))


def _prune(value: Any, error: Exception) -> bool:
    """Delete from ``value`` the parts that the error blames; False where that is the value as a whole."""
    blamed = list(_blamed(value, error))
    for part_error, key in reversed(blamed):
        if key is None:
            return False
        if not _prune(value[key], part_error):
            logger.debug("ignored in initialize: %s (%s)", key, part_error)
            del value[key]
    return bool(blamed)


def _blamed(value: Any, error: Exception) -> Iterator[tuple[Exception, Any]]:
    """The errors inside an error, each with the key of the part of ``value`` that it is about, or None."""
    if isinstance(error, ClassValidationError) and isinstance(value, dict):
        for inner, note in error.group_exceptions()[0]:
            yield inner, _key(value, note.name)
    elif isinstance(error, IterableValidationError) and isinstance(value, list):
        for inner, place in error.group_exceptions()[0]:
            yield inner, place.index


def _key(value: dict[str, Any], attribute: str) -> str | None:
    """The key that an attribute was read from: ``symbol_kind`` from ``symbolKind``."""
    wanted = attribute.replace("_", "").lower()
    return next((key for key in value if key.lower() == wanted), None)
