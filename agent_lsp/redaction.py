"""Takes secrets out of text that is kept or shown: the ones we know, and what looks like one (F76).

Invariant: the outcome has none of the known secrets, and a text without any stays as it is, to the character.
"""

import re
from collections.abc import Iterable, Mapping

REDACTED = "[redacted]"

SHORTEST_SECRET = 8
"""Characters; what is shorter would take innocent words along."""

_SECRET_VARIABLE = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")

_HINTS = ("sk-", "gh", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza", "eyJ", "PRIVATE KEY", "npm_", "pypi-")
_AUTHORIZATION = re.compile(r"(authorization[\"']?\s*[:=]\s*[\"']?)(?:(?:bearer|basic|token)\s+)?[\w.~+/=-]{8,}", re.I)
_BEARER = re.compile(r"(\bbearer\s+)[\w.~+/=-]{16,}", re.I)
_PASSWORD_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@\"']*:)[^\s/@\"']+(?=@)", re.I)
_TOKENS = re.compile(
    r"\bsk-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}"
    r"|\bnpm_[A-Za-z0-9]{36}|\bpypi-[A-Za-z0-9_-]{32,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)


class Redactor:
    """Takes the given secrets and everything of a well-known shape out of texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = sorted({each for each in secrets if len(each) >= SHORTEST_SECRET}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, REDACTED)
        if "uthorization" in text or "UTHORIZATION" in text:
            text = _AUTHORIZATION.sub(rf"\1{REDACTED}", text)
        if "earer" in text or "EARER" in text:
            text = _BEARER.sub(rf"\1{REDACTED}", text)
        if "://" in text and "@" in text:
            text = _PASSWORD_IN_URL.sub(rf"\1{REDACTED}", text)
        if any(hint in text for hint in _HINTS):
            text = _TOKENS.sub(REDACTED, text)
        return text


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """The values of the environment whose names say that they are secrets."""
    return [value for name, value in environ.items() if _SECRET_VARIABLE.search(name.upper())]
