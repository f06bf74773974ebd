"""The keys of a script, hashed and compared thousands of lines at a time.

A hash is the sum of the words of a key, of 8 bytes each, and of its length, each with its own multiplier. So
the keys of a block are hashed in a few array operations, 8 bytes of every key at a time. It is used in memory
alone: no file has such hashes.
"""

from __future__ import annotations

import itertools
import operator
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from seekable.formats.kaldi.tables.script import split_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["KeysOfBlock", "hash_of_key", "keys_of_block"]

_WORD: Final = 8
_LONGEST_KEY: Final = 256
"""Blocks with longer keys are parsed line by line."""

_MASK: Final = (1 << 64) - 1
_MULTIPLIERS: Final = tuple(
    (0x9E3779B97F4A7C15 * (2 * number + 1)) & _MASK for number in range(_LONGEST_KEY // _WORD)
)
_OF_LENGTH: Final = 0xD6E8FEB86659FD93
_WORDS: Final = tuple(struct.Struct(f"<{count}Q") for count in range(len(_MULTIPLIERS) + 1))
_LOW_BYTES: Final = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
_HALF: Final = 32
_NEWLINE, _SPACE, _DELETE, _HIGHEST = 10, 32, 127, 255
_SPACES: Final = np.array([byte in b"\t\n\r " for byte in range(_SPACE + 1)])


class KeysOfBlock(NamedTuple):
    """The keys of the lines of a block."""

    starts: Int64s
    """The first byte of each line in the block."""

    hashes: NDArray[np.uint64]
    """The hash of each key."""

    disorder: int | None
    """The first line whose key is not higher than the one before; None if the keys ascend."""

    first: bytes
    """The key of the first line."""

    last: bytes
    """The key of the last line."""


def hash_of_key(key: bytes) -> int:
    r"""Return the hash of one key.

    Example:
        >>> block = keys_of_block(b"utt1 a.ark:5\nutt2 a.ark:9\n", 1, "demo")
        >>> block.hashes.tolist() == [hash_of_key(b"utt1"), hash_of_key(b"utt2")]
        True
    """
    count = (len(key) + _WORD - 1) // _WORD
    padded = key.ljust(_WORD * count, b"\0")
    if count < len(_WORDS):
        words, multipliers = _WORDS[count].unpack(padded), _MULTIPLIERS
    else:
        words = struct.unpack(f"<{count}Q", padded)
        multipliers = _MULTIPLIERS * (count // len(_MULTIPLIERS) + 1)
    total: int = sum(map(operator.mul, words, multipliers), len(key) * _OF_LENGTH) & _MASK
    return total ^ (total >> _HALF)


def keys_of_block(block: bytes, number: int, name: str) -> KeysOfBlock:
    """Return the keys of some lines.

    Args:
        block: the lines, at least one; each has its end.
        number: the number of the first one, from 1, for messages.
        name: the name of the script, for messages.

    Raises:
        CorruptTable: a line is empty, or has no filename, or its key has control characters.
    """
    data = np.frombuffer(block, np.uint8)
    blanks = np.flatnonzero(data <= _SPACE)
    kinds = data[blanks]
    ends = np.flatnonzero(kinds == _NEWLINE)
    # Of the blanks, the first one of a line is the end of its key, if the line does not begin with it.
    firsts = np.concatenate([[0], ends[:-1] + 1])
    starts = np.concatenate([[0], blanks[ends[:-1]] + 1])
    lengths = blanks[firsts] - starts
    has_filename = blanks[ends] - blanks[firsts] > ends - firsts
    is_plain = (
        bool(
            lengths.min() > 0
            and lengths.max() <= _LONGEST_KEY
            and has_filename.all()
            and _SPACES[kinds].all()
        )
        and not ((data == _DELETE) | (data == _HIGHEST)).any()
    )
    if not is_plain:
        return _keys_of_lines(block, number, name)
    return _keys_of_plain_lines(block, starts, lengths)


def _keys_of_plain_lines(block: bytes, starts: Int64s, lengths: Int64s) -> KeysOfBlock:
    padded = block + bytes(_WORD)
    every_word = np.ndarray((len(block) + 1,), "<u8", padded, strides=(1,))
    hashes = lengths.astype(np.uint64) * np.uint64(_OF_LENGTH)
    undecided = np.ones(len(starts) - 1, np.bool_)
    disorder = len(starts)
    for number, at in enumerate(range(0, int(lengths.max()), _WORD)):
        places = np.minimum(starts + at, len(block))
        words = every_word[places] & _LOW_BYTES[np.clip(lengths - at, 0, _WORD)]
        hashes += words * np.uint64(_MULTIPLIERS[number])
        if undecided.any():
            ordered = words.byteswap()
            falls = np.flatnonzero(undecided & (ordered[1:] < ordered[:-1]))
            disorder = min(disorder, int(falls[0]) + 1) if len(falls) else disorder
            undecided &= ordered[1:] == ordered[:-1]
    same = np.flatnonzero(undecided)
    disorder = min(disorder, int(same[0]) + 1) if len(same) else disorder
    hashes ^= hashes >> np.uint64(_HALF)
    first, last = (
        block[start : start + length]
        for start, length in zip(starts[[0, -1]].tolist(), lengths[[0, -1]].tolist(), strict=True)
    )
    return KeysOfBlock(starts, hashes, disorder if disorder < len(starts) else None, first, last)


def _keys_of_lines(block: bytes, number: int, name: str) -> KeysOfBlock:
    """Return the keys of lines of any kind, one after the other."""
    lines = block.split(b"\n")[:-1]
    keys = [split_line(line, at, name)[0] for at, line in enumerate(lines, number)]
    starts = np.cumsum([0, *(len(line) + 1 for line in lines[:-1])])
    hashes = np.array([hash_of_key(key) for key in keys], np.uint64)
    pairs = enumerate(itertools.pairwise(keys), 1)
    disorder = next((at for at, (one, two) in pairs if two <= one), None)
    return KeysOfBlock(starts, hashes, disorder, keys[0], keys[-1])
