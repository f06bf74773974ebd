"""Keys of web servers: paths of URLs as they are written, and as obstore sends them."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

__all__ = ["is_sent_as_written", "key_of_path", "path_of_key", "written"]

_SAFE: Final = "/!$&'()*+,;=:@~"
"""The characters that paths of URLs have as they are, beside letters, digits and ``-._``."""

_ESCAPE: Final = re.compile("%[0-9A-Fa-f]{2}")
_LONE_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_LEFT_OUT: Final = frozenset({"", ".", ".."})
"""Segments of which obstore makes no path."""


def path_of_key(key: str) -> str:
    """Return the path for obstore, which encodes it itself."""
    return unquote(key)


def key_of_path(path: str) -> str:
    """Return the key of a path of obstore."""
    return quote(path, safe=_SAFE)


def written(key: str) -> str:
    """Return a key with its escapes as they are, and with all else encoded that a URL cannot have.

    Example:
        >>> written("a%2fb c%.jsonl")
        'a%2Fb%20c%25.jsonl'
    """
    whole = _LONE_PERCENT.sub("%25", key)
    return _ESCAPE.sub(lambda escape: escape[0].upper(), quote(whole, safe=f"%{_SAFE}"))


def is_sent_as_written(key: str) -> bool:
    """Return True if obstore, given the path of a key, asks for the URL that was written.

    It cannot send an encoded slash, or bytes that are not UTF-8, and it takes no empty segment. A server may
    have other files under these.

    Example:
        >>> is_sent_as_written("a b%20c.jsonl"), is_sent_as_written("a%2Fb.jsonl"), is_sent_as_written("a//b")
        (True, False, False)
    """
    if "%" not in key and "//" not in key and "." not in key:
        return True
    return key_of_path(path_of_key(key)) == written(key) and _LEFT_OUT.isdisjoint(key.split("/"))
