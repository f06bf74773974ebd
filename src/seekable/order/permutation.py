"""A keyed permutation of ``range(n)``: any element in constant time, and its inverse.

An additive Feistel network over mixed radices. With ``a = ceil(sqrt(n))`` and ``b = ceil(n / a)`` a
number is written as ``left * b + right``; eight rounds add a keyed hash of one half to the other, modulo
``a`` and ``b`` in turn. What falls on one of the fewer than ``a`` numbers from ``n`` on is sent through
again until it lands below ``n`` (cycle walking, after Black and Rogaway, "Ciphers with arbitrary finite
domains", 2002). Because the radices follow ``n``, walks are rare at every size.

Up to sixteen elements a network is too small to be fair; there a Fisher-Yates shuffle driven by the key makes
every one of the ``n!`` orders equally likely.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from seekable._typing import Value
from seekable.order.keys import GOLDEN, MASK, U64, mix_each, mix_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["permute", "permute_one", "unpermute", "unpermute_one"]

_ROUNDS = 8
"""The number of rounds: six leave too many neighbours together, at least among up to 100 elements."""

_TINY = 16
"""The most elements of an exact shuffle: a network of 9 to 12 elements gives some pairs 7 % too often."""

_MULTIPLY_1 = 0xFF51AFD7ED558CCD
_MULTIPLY_2 = 0xC4CEB9FE1A85EC53
_MULTIPLY_1_U64 = U64(_MULTIPLY_1)
_MULTIPLY_2_U64 = U64(_MULTIPLY_2)
_HALF_WORD = U64(32)
_STEPS = np.array([(GOLDEN * (i + 1)) & MASK for i in range(_TINY)], dtype=np.uint64)
"""The numbers that are added to a key, to get the keys of rounds and of a shuffle's draws."""


def permute(
    x: NDArray[np.int64], n: int | NDArray[np.int64], key: int | NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the images of numbers under the keyed permutation of ``range(n)``.

    Args:
        x: numbers from 0 to ``n - 1``.
        n: the number of permuted elements, up to 2**62.
        key: a 64-bit key.

    Returns:
        Numbers from 0 to ``n - 1``, in the shape that ``x``, ``n`` and ``key`` broadcast to.

    Example:
        >>> import numpy as np
        >>> bool((np.sort(permute(np.arange(1000), 1000, 42)) == np.arange(1000)).all())
        True
    """
    return _walk(x, n, key, _FORWARD)


def unpermute(
    y: NDArray[np.int64], n: int | NDArray[np.int64], key: int | NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the numbers whose images under the keyed permutation are ``y``: the inverse of ``permute``.

    Example:
        >>> import numpy as np
        >>> unpermute(permute(np.array([3, 1, 2]), 1000, 42), 1000, 42).tolist()
        [3, 1, 2]
    """
    return _walk(y, n, key, _INVERSE)


def permute_one(x: int, n: int, key: int) -> int:
    """Return ``permute`` of one number, without arrays.

    Example:
        >>> import numpy as np
        >>> [permute_one(5, 1000, 42)] == permute(np.array([5]), 1000, 42).tolist()
        True
    """
    if n <= _TINY:
        return _tiny_order(n, key)[x]
    a, b, keys = _schedule(n, key)
    while True:
        left, right = divmod(x, b)
        for i in range(0, _ROUNDS, 2):
            left += _round_one(right, keys[i], a)
            if left >= a:
                left -= a
            right += _round_one(left, keys[i + 1], b)
            if right >= b:
                right -= b
        x = left * b + right
        if x < n:
            return x


def unpermute_one(y: int, n: int, key: int) -> int:
    """Return ``unpermute`` of one number, without arrays."""
    if n <= _TINY:
        return _tiny_order(n, key).index(y)
    a, b, keys = _schedule(n, key)
    while True:
        left, right = divmod(y, b)
        for i in range(_ROUNDS - 2, -1, -2):
            right -= _round_one(left, keys[i + 1], b)
            if right < 0:
                right += b
            left -= _round_one(right, keys[i], a)
            if left < 0:
                left += a
        y = left * b + right
        if y < n:
            return y


def _round_one(x: int, key: int, modulus: int) -> int:
    t = ((x ^ key) * _MULTIPLY_1) & MASK
    t = ((t ^ (t >> 32)) * _MULTIPLY_2) & MASK
    return ((t >> 32) * modulus) >> 32


@lru_cache(maxsize=1024)
def _schedule(n: int, key: int) -> tuple[int, int, tuple[int, ...]]:
    a = math.isqrt(n - 1) + 1
    keys = tuple(mix_one((key + GOLDEN * (i + 1)) & MASK) for i in range(_ROUNDS))
    return a, -(-n // a), keys


@lru_cache(maxsize=1024)
def _schedule_of_one(
    n: int, key: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], list[NDArray[np.uint64]]]:
    """Return the radices and the keys of the rounds as arrays of one element."""
    a, b, keys = _schedule(n, key)
    made = np.array([a, b, *keys], dtype=np.uint64)[:, None]
    made.setflags(write=False)
    return made[0], made[1], [*made[2:]]


class _Direction(Value, frozen=True):
    """The values in which the permutation and its inverse differ."""

    rounds: range
    """The rounds in their order: even ones change the left half, odd ones the right half."""
    change: np.ufunc
    """Adds a hash to a half, or subtracts it."""
    change_back: np.ufunc
    """Subtracts the radix from a half, or adds it."""
    tiny: Callable[..., NDArray[np.uint64]]
    """The same for up to sixteen elements."""


def _walk(
    x: NDArray[np.int64], n: int | NDArray[np.int64], key: int | NDArray[np.uint64], way: _Direction
) -> NDArray[np.int64]:
    """Return each ``x`` after passes of the network that bring it below ``n``; tiny ``n`` use a table."""
    sizes = np.atleast_1d(n).astype(np.uint64)
    keys = key if isinstance(key, np.ndarray) else np.array([key], dtype=np.uint64)
    shape = np.broadcast_shapes(np.shape(x), sizes.shape, keys.shape)
    # In C order, so that walked elements are written through a flat view.
    values = np.broadcast_to(x, shape).astype(np.uint64, order="C")
    if not values.size:
        return values.astype(np.int64)
    if not (sizes <= U64(_TINY)).any():
        return _walk_large(values, sizes, keys, way).astype(np.int64)
    values, sizes, keys = (np.broadcast_to(column, shape).ravel() for column in (values, sizes, keys))
    small = sizes <= U64(_TINY)
    out = np.empty_like(values)
    out[small] = way.tiny(values[small], sizes[small], keys[small])
    large = ~small
    if large.any():
        out[large] = _walk_large(values[large], sizes[large], keys[large], way)
    return out.reshape(shape).astype(np.int64)


def _walk_large(
    values: NDArray[np.uint64], sizes: NDArray[np.uint64], keys: NDArray[np.uint64], way: _Direction
) -> NDArray[np.uint64]:
    if sizes.size == keys.size == 1:
        a, b, round_keys = _schedule_of_one(int(sizes.item()), int(keys.item()))
    else:
        a, b = _radices(sizes)
        round_keys = [mix_each(keys + step) for step in _STEPS[:_ROUNDS]]
    out = _network(values, a, b, round_keys, way)
    outside = np.flatnonzero(out >= sizes)
    if outside.size:
        flat, shape = out.reshape(-1), out.shape
        a, b, sizes, *round_keys = [
            column.reshape(-1) if column.size == 1 else np.broadcast_to(column, shape).reshape(-1)[outside]
            for column in (a, b, sizes, *round_keys)
        ]
        while outside.size:
            walked = flat[outside] = _network(flat[outside], a, b, round_keys, way)
            still = walked >= sizes
            outside = outside[still]
            a, b, sizes, *round_keys = [
                column if column.size == 1 else column[still] for column in (a, b, sizes, *round_keys)
            ]
    return out


def _radices(n: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    a = np.ceil(np.sqrt(n.astype(np.float64))).astype(np.uint64)
    # The float square root is off by at most one for n up to 2**62.
    a += a * a < n
    a -= (a - U64(1)) * (a - U64(1)) >= n
    return a, (n + a - U64(1)) // a


def _network(
    x: NDArray[np.uint64],
    a: NDArray[np.uint64],
    b: NDArray[np.uint64],
    keys: list[NDArray[np.uint64]],
    way: _Direction,
) -> NDArray[np.uint64]:
    """Return numbers after one pass of the network: each round changes one half by a hash of the other."""
    left = x // b
    right = x - left * b
    scratch = np.empty_like(x)
    for number in way.rounds:
        half, other, modulus = (right, left, b) if number % 2 else (left, right, a)
        t = other ^ keys[number]
        t *= _MULTIPLY_1_U64
        np.right_shift(t, _HALF_WORD, out=scratch)
        t ^= scratch
        t *= _MULTIPLY_2_U64
        t >>= _HALF_WORD
        t *= modulus
        t >>= _HALF_WORD
        way.change(half, t, out=half)
        # In unsigned arithmetic a number below 0 wraps round to something huge, so the smaller of the two
        # is the number modulo the radix.
        np.minimum(half, way.change_back(half, modulus, out=scratch), out=half)
    left *= b
    left += right
    return left


@lru_cache(maxsize=1024)
def _tiny_order(n: int, key: int) -> tuple[int, ...]:
    """Return the whole permutation of ``range(n)``, n <= 16, by the shuffle of Fisher and Yates."""
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = ((mix_one((key + GOLDEN * i) & MASK) >> 32) * (i + 1)) >> 32
        order[i], order[j] = order[j], order[i]
    return tuple(order)


def _tiny_orders(n: NDArray[np.uint64], key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return ``_tiny_order`` of each n and key, as an array with a row of sixteen for each."""
    rows = np.arange(n.size)
    orders = np.tile(np.arange(_TINY, dtype=np.uint64), (n.size, 1))
    for i in range(_TINY - 1, 0, -1):
        j = ((mix_each(key + _STEPS[i - 1]) >> _HALF_WORD) * U64(i + 1)) >> _HALF_WORD
        j = np.where(n > U64(i), j, U64(i)).astype(np.intp)
        taken = orders[rows, j]
        orders[rows, j] = orders[:, i]
        orders[:, i] = taken
    return orders


def _tiny_forward(
    x: NDArray[np.uint64], n: NDArray[np.uint64], key: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    permuted: NDArray[np.uint64] = _tiny_orders(n, key)[np.arange(x.size), x.astype(np.intp)]
    return permuted


def _tiny_inverse(
    y: NDArray[np.uint64], n: NDArray[np.uint64], key: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    found: NDArray[np.uint64] = (_tiny_orders(n, key) == y[:, None]).argmax(axis=1).astype(np.uint64)
    return found


_FORWARD = _Direction(range(_ROUNDS), np.add, np.subtract, _tiny_forward)
_INVERSE = _Direction(range(_ROUNDS)[::-1], np.subtract, np.add, _tiny_inverse)
