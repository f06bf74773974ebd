"""Randomness of single records, by a generator that is seeded anew for each record.

The stream of an item is PCG64 (O'Neill, 2014) started at a 128-bit hash of (seed, canonical JSON of the
item's position or token), so an item's randomness depends on nothing that came before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xxhash

from seekable.state.canonical import canonical_json

__all__ = ["ItemRandomness"]

_INCREMENT = 0x5851F42D4C957F2D14057B7EF767814F
"""The increment of PCG64; any odd number is valid."""


class ItemRandomness:
    """A random generator that is seeded anew for each item; one thread at a time may use it.

    Example:
        >>> random = ItemRandomness(3)
        >>> first = random.rng(7).random()
        >>> random.rng(8).random() != first, random.rng(7).random() == first
        (True, True)
    """

    __slots__ = ("_bits", "_fields", "_rng", "_seed", "_state")

    def __init__(self, seed: int) -> None:
        """Create the generator of one seed, ``0 <= seed < 2**64``."""
        self._seed = seed
        self._bits = np.random.PCG64(0)
        self._rng = np.random.Generator(self._bits)
        self._fields: dict[str, int] = {"state": 0, "inc": _INCREMENT}
        self._state: dict[str, Any] = {
            "bit_generator": "PCG64",
            "state": self._fields,
            "has_uint32": 0,
            "uinteger": 0,
        }

    def rng(self, token: Any) -> np.random.Generator:
        """Return the generator, set to the start of the item's stream; valid until the next call."""
        text = b"%d" % token if type(token) is int else canonical_json(token)
        self._fields["state"] = xxhash.xxh3_128_intdigest(text, self._seed)
        self._bits.state = self._state  # type: ignore[assignment]  # numpy takes any dict of these keys
        return self._rng
