"""64-bit keys: hashes of (kind of node, seed, epoch, local arguments).

A key is made by absorbing one 64-bit number after another with the finalizer of splitmix64
(Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). Absorbing is
one-to-one in the number absorbed, so two seeds never share a key, and it is not symmetric, so seed 1
at epoch 0 has nothing to do with seed 0 at epoch 1.

Scalar and array forms give the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GOLDEN", "MASK", "U64", "derive", "derive_each", "kind_key", "mix_each", "mix_one"]

U64 = np.uint64
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio: the increment of splitmix64."""

_MULTIPLY_1 = 0xBF58476D1CE4E5B9
_MULTIPLY_2 = 0x94D049BB133111EB
_GOLDEN_U64 = U64(GOLDEN)
_MULTIPLY_1_U64 = U64(_MULTIPLY_1)
_MULTIPLY_2_U64 = U64(_MULTIPLY_2)


def mix_one(value: int) -> int:
    """Scramble one 64-bit number (one-to-one)."""
    value = ((value ^ (value >> 30)) * _MULTIPLY_1) & MASK
    value = ((value ^ (value >> 27)) * _MULTIPLY_2) & MASK
    return value ^ (value >> 31)


def mix_each(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble each 64-bit number of an array of at least one dimension (one-to-one)."""
    values = (values ^ (values >> U64(30))) * _MULTIPLY_1_U64
    values = (values ^ (values >> U64(27))) * _MULTIPLY_2_U64
    return values ^ (values >> U64(31))


def kind_key(kind: str) -> int:
    """Return the key that all nodes of one kind start from.

    Example:
        >>> kind_key("shuffle") == kind_key("shuffle"), kind_key("shuffle") == kind_key("mix")
        (True, False)
    """
    return xxhash.xxh3_64_intdigest(f"seekable.{kind}".encode())


def derive(key: int, *parts: int) -> int:
    """Absorb numbers of 0 to 2**64 - 1 into a key, one after another.

    Example:
        >>> derive(kind_key("shuffle"), 7, 0) == derive(derive(kind_key("shuffle"), 7), 0)
        True
    """
    for part in parts:
        key = mix_one(((key ^ part) + GOLDEN) & MASK)
    return key


def derive_each(key: NDArray[np.uint64], part: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Absorb one number per key: ``derive`` over whole arrays of at least one dimension."""
    return mix_each((key ^ part) + _GOLDEN_U64)
