"""One text for one value: canonical JSON, and digests of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import xxhash

__all__ = ["canonical_json", "fingerprint_of", "parsed_json", "plain_json"]

_ENCODER = msgspec.json.Encoder(order="sorted")


def canonical_json(value: Any) -> bytes:
    r"""Return the JSON of a value with sorted keys and no spaces; tuples become lists.

    A value with the name of a file that is no UTF-8, which has lone surrogates, is escaped to ASCII.

    Example:
        >>> canonical_json({"b": (1, 2), "a": None})
        b'{"a":null,"b":[1,2]}'
        >>> import os
        >>> canonical_json({"name": os.fsdecode(b"caf\xe9")})
        b'{"name":"caf\\udce9"}'
    """
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def parsed_json(text: str) -> Any:
    r"""Return the value of a canonical JSON text, also of one with lone surrogates.

    Raises:
        ValueError: the text is no JSON.

    Example:
        >>> import os
        >>> parsed_json('{"name":"caf\\udce9"}') == {"name": os.fsdecode(b"caf\xe9")}
        True
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)


def plain_json(value: Any) -> Any:
    """Return a value as JSON has it, nothing of it shared: tuples become lists.

    Example:
        >>> plain_json({"b": (1, 2)})
        {'b': [1, 2]}
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except UnicodeEncodeError:
        return json.loads(json.dumps(value))


def fingerprint_of(description: Any) -> str:
    """Return the digest that names a description: ``xxh3:`` and 32 hexadecimal digits.

    Example:
        >>> fingerprint_of({"kind": "take", "count": 3})[:5]
        'xxh3:'
    """
    return f"xxh3:{xxhash.xxh3_128_hexdigest(canonical_json(description))}"
