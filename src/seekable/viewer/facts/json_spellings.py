"""The ways in which writers of JSON write a text."""

from __future__ import annotations

import itertools

import numpy as np

__all__ = ["json_spellings"]

_LAST_ASCII = 0x7F
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
"""What JSON has names for."""


def json_spellings(text: str) -> list[bytes]:
    r"""Return the bytes of a text within JSON strings, as usual writers write it.

    They leave letters that are not ASCII as they are, or escape them with small or large digits; some escape
    ``/``, and some what has a meaning in HTML.

    Example:
        >>> json_spellings('say "hi"')
        [b'say \\"hi\\"', b'say \\u0022hi\\u0022']
    """
    ways = itertools.product(("", "04x", "04X"), ("", "/"), ("", "<>&\u2028\u2029", "<>&'+`\""))
    return sorted(
        {"".join([_letter(each, *way) for each in text]).encode("utf-8", "surrogatepass") for way in ways}
    )


def _letter(letter: str, digits: str, slash: str, html: str) -> str:
    """Return a letter within a JSON string.

    Args:
        letter: one letter.
        digits: the format of the digits of letters that are not ASCII; empty leaves these as they are.
        slash: ``"/"`` if it is escaped by a backslash.
        html: letters that are written as digits.
    """
    code, form = ord(letter), digits or "04x"
    if letter in html:
        return f"\\u{code:{form}}"
    if letter in _ESCAPES or letter == slash:
        return _ESCAPES.get(letter, f"\\{letter}")
    if code < ord(" "):
        return f"\\u{code:{form}}"
    if code > _LAST_ASCII and digits:
        halves = np.frombuffer(letter.encode("utf-16-le", "surrogatepass"), "<u2").tolist()
        return "".join([f"\\u{half:{form}}" for half in halves])
    return letter
