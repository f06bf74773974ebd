"""Cases of token stores name options flatly: ``gathered`` puts those of ``sk.formats.TokenStore`` into it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import seekable as sk

_FIELDS = frozenset(field.name for field in fields(sk.formats.TokenStore))


def gathered(**options: Any) -> dict[str, Any]:
    """Return keywords of ``sk.tokenize`` and ``write_tokens``."""
    stored = {name: value for name, value in options.items() if name in _FIELDS}
    others = {name: value for name, value in options.items() if name not in _FIELDS}
    return {**others, "store": sk.formats.TokenStore(**stored)} if stored else others
