"""The rule by which the name of a member of an archive has a key and a field."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, final

__all__ = ["SampleRule", "split_name"]

_META = re.compile(rb"__[^/]*__(?:$|/)")


@final
@dataclass(frozen=True, slots=True)
class SampleRule:
    """The rule by which the names of members decide which members make a sample."""

    split: Literal["first", "last"] = "first"
    """The dot of the basename that ends the key."""

    adjacent: bool = True
    """False: members of one key are one sample wherever they lie, ``group="key"``."""

    pairs: bool = False
    """True: each two members are a sample, split at their last dots, as in Lhotse Shar."""


def split_name(name: bytes, rule: SampleRule) -> tuple[bytes, bytes] | None:
    """Return the key and the field of a member, the field in its own case; None if it is part of no sample.

    Example:
        >>> split_name(b"d.x/a.b.JPG", SampleRule()), split_name(b"d.x/a.b.JPG", SampleRule(split="last"))
        ((b'd.x/a', b'b.JPG'), (b'd.x/a.b', b'JPG'))
        >>> [split_name(name, SampleRule()) for name in (b"__meta__", b"d/._a.jpg", b"README")]
        [None, None, None]
    """
    base = name.rfind(b"/") + 1
    if rule.pairs:
        dot = name.rfind(b".", base)
        return (name[:dot], name[dot + 1 :]) if dot > base else None
    if name.startswith(b"__") and _META.match(name):
        return None
    dot = name.find(b".", base) if rule.split == "first" else name.rfind(b".", base)
    if dot <= base or name[base] == ord("."):
        return None
    return name[:dot], name[dot + 1 :]
