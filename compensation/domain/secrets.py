"""Does a literal look like a secret? A definition is stored and shown, so it must hold none (CMP-304)."""

from __future__ import annotations

import re

_TELLING_NAMES = re.compile(
    r"authori[sz]ation|cookie|password|passwd|secret|token|credential|(?:api|access|private|auth)[-_]?key|signature",
    re.IGNORECASE,
)
_TELLING_VALUES = re.compile(
    r"^(?:bearer|basic|digest|token|apikey)\s|^(?:sk|pk|rk|whsec)[-_]|^gh[pousr]_|^github_pat_|^glpat-|^xox[a-z]-"
    r"|^(?:AKIA|ASIA)[0-9A-Z]{12}|^AIza|^eyJ[\w-]+\.|-----BEGIN",
    re.IGNORECASE,
)
_LONG_HEX = re.compile(r"[0-9a-fA-F]{32,}")
_LONG_BASE64 = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])[A-Za-z0-9+/_=-]{24,}")


def has_telling_name(name: str) -> bool:
    """A header or parameter of this name exists to carry a secret."""
    return bool(_TELLING_NAMES.search(name))


def looks_like_secret(value: str) -> bool:
    """A known prefix of keys and tokens, or a long run of characters nobody would choose."""
    if _TELLING_VALUES.search(value):
        return True
    return any(_LONG_HEX.fullmatch(word) or _LONG_BASE64.fullmatch(word) for word in re.split(r"[\s,;:]+", value))
