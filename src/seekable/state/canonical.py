"""One text for one value: canonical JSON, and digests of it."""

from __future__ import annotations

from typing import Any

import msgspec
import xxhash

__all__ = ["canonical_json", "fingerprint_of", "plain_json"]

_ENCODER = msgspec.json.Encoder(order="sorted")


def canonical_json(value: Any) -> bytes:
    """Return the JSON of a value with sorted keys and no spaces; tuples become lists.

    Example:
        >>> canonical_json({"b": (1, 2), "a": None})
        b'{"a":null,"b":[1,2]}'
    """
    return _ENCODER.encode(value)


def plain_json(value: Any) -> Any:
    """Return a value as JSON has it, nothing of it shared: tuples become lists.

    Example:
        >>> plain_json({"b": (1, 2)})
        {'b': [1, 2]}
    """
    return msgspec.json.decode(msgspec.json.encode(value))


def fingerprint_of(description: Any) -> str:
    """Return the digest that names a description: ``xxh3:`` and 32 hexadecimal digits.

    Example:
        >>> fingerprint_of({"kind": "take", "count": 3})[:5]
        'xxh3:'
    """
    return f"xxh3:{xxhash.xxh3_128_hexdigest(canonical_json(description))}"
