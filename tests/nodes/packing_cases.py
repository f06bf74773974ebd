"""Cases of packing name options flatly: ``gathered`` puts those of ``sk.Packing`` into it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import seekable as sk

_FIELDS = frozenset(field.name for field in fields(sk.Packing))


def gathered(**options: Any) -> dict[str, Any]:
    """Return keywords of ``Dataset.pack``."""
    filled = {name: value for name, value in options.items() if name in _FIELDS}
    others = {name: value for name, value in options.items() if name not in _FIELDS}
    return {**others, "method": sk.Packing(**filled)} if filled else others
