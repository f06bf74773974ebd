"""Files that no one would write on purpose: lines of JSON and text, cut up and put together again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

PIECES = (
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n\n",
    b" ",
    b"\t \r\n",
    b"\x00",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"\xe2\x80\xa8",
    b'{"id": 1}',
    b'{"id": "a", "text": "b\\nc"}',
    b'{"id": 1, "id": 2}',
    b'{"id": 1}{"id": 2}',
    b'{"id": 1',
    b"[1, 2, [3]]",
    b"[" * 300,
    b"[" * 40 + b"]" * 40,
    b"null",
    b"true",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"01",
    b"123456789012345678901234567890",
    b'"\\ud800"',
    b'"\\u0000"',
    b'"unclosed',
    b'"\t"',
    b"/* no */",
    b"'single'",
    b"good day",
    b"x" * 200,
)
"""What files are made of: what matters to a line splitter, and what JSON readers differ on."""

CSV_PIECES = (
    *PIECES[:13],
    *(b'"', b'"', b'""', b'"""', b'","', b'"\n"', b'x"', b'"x', b'"x"y,', b'"two\nlines"'),
    *(b",", b",", b",,", b"a", b"b,c", b"one,two,three", b"x" * 200),
)
"""What files of CSV are made of."""


def made(rng: random.Random, of: tuple[bytes, ...] = PIECES) -> bytes:
    """Return the bytes of one file."""
    pieces = [rng.choice(of) for _ in range(rng.choice([0, 1, 2, 5, 20, 200]))]
    # Mostly lines, so that there is something to read.
    data = b"".join(piece + (b"\n" if rng.random() < 0.5 else b"") for piece in pieces)
    for _ in range(rng.choice([0, 0, 1, 5])):
        data = mutated(rng, data)
    return data


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes with a change somewhere."""
    at = rng.randrange(len(data) + 1)
    to = min(len(data), at + rng.choice([1, 2, 9, 100]))
    return rng.choice(
        [
            data[:at] + data[to:],
            data[:at] + rng.choice(PIECES) + data[at:],
            data[:at] + rng.randbytes(to - at) + data[to:],
            data[:at] + data[at:to] * 2 + data[to:],
            data[:at],
        ]
    )
