"""Posteriors: for each frame, numbers with a weight each, or with a vector each."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import chain, cycle
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.basic_types import (
    BASIC_TYPES,
    BINARY_HEADER,
    DIGITS,
    checked_items,
    decoded,
    parse_number,
    read_binary,
    read_header,
    read_size,
    token_bytes,
)
from seekable.formats.kaldi.holders.basic_values import RECORD_BYTES, grouped_bytes, read_groups, text_line
from seekable.formats.kaldi.holders.matrices import read_vector, skip_vector, vector_bytes
from seekable.formats.kaldi.holders.number_text import (
    parse_bracketed,
    read_vector_text,
    skip_brackets,
    vector_text,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.kaldi.cursor import Cursor, Output

_INT32, _FLOAT = BASIC_TYPES["int32"], BASIC_TYPES["float"]
_MOST = 10_000_000
"""Kaldi refuses more frames, and more numbers in a frame."""

_BEFORE_WEIGHT = 6  # bytes of an element
_WEIGHTS = {each.mark: each.packing[-1] for each in (_FLOAT, BASIC_TYPES["double"])}
_MANY = 64  # pairs in a frame; below, numpy is slower
_PAIR = 2
_RECORD = np.dtype((np.void, RECORD_BYTES))
_PAIR_OF_RECORDS = struct.Struct("<xixf")


@dataclass(frozen=True, slots=True)
class PosteriorHolder:
    """Posteriors, as a list for each frame of tuples (int, float)."""

    has_no_arrays: ClassVar[bool] = True
    name: str = "posterior"
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> list[list[tuple[int, float]]]:
        """Return the next posterior, and move past it."""
        if not read_header(cursor):
            return _read_text(cursor)
        frames = _read_count(cursor, "the number of frames")
        if (read := read_groups(cursor, frames, _frame_starts)) is not None:
            return _paired(read.found, read.raw)
        return [_read_frame(cursor) for _ in range(frames)]

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a posterior, in binary form or as text."""
        sizes, numbers, weights = _united(value)
        if max(len(sizes), sizes.max(initial=0)) > _MOST:
            raise InvalidArgument(f"value must have at most {_MOST} frames, and numbers in a frame")
        if binary:
            records = np.empty((len(numbers), _PAIR), np.int32)
            records[:, 0] = numbers
            records[:, 1] = weights.view(np.int32)
            file.write(BINARY_HEADER + _INT32.packed(len(sizes)) + grouped_bytes(sizes, records.ravel()))
            return
        pairs = [*chain.from_iterable(zip(numbers.tolist(), weights.tolist(), strict=True))]
        form = f"%d %.{self.precision}g "
        parts = [
            (form * size) % tuple(pairs[_PAIR * (end - size) : _PAIR * end])
            for size, end in zip(sizes.tolist(), np.cumsum(sizes).tolist(), strict=True)
        ]
        file.write(("".join(f"[ {each}] " for each in parts) + "\n").encode())

    def skip(self, cursor: Cursor) -> None:
        """Move past the next posterior."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int]:
        """Return the shape (frames,) of the next posterior."""
        if not read_header(cursor):
            return (text_line(cursor, "a line with a posterior", may_lack_end=False).count(b"["),)
        frames = _read_count(cursor, "the number of frames")
        for _ in range(frames):
            _skip_frame(cursor)
        return (frames,)


@dataclass(frozen=True, slots=True)
class GaussPosteriorHolder:
    """Gaussian posteriors, as a list for each frame of tuples (int, float32 array)."""

    name: str = "gauss-posterior"
    precision: int = DIGITS

    def read(self, cursor: Cursor) -> list[list[tuple[int, NDArray[np.float32]]]]:
        """Return the next posterior, and move past it."""
        if read_header(cursor):
            frames = _read_count(cursor, "the number of frames")
            return [
                [
                    (int(read_binary(cursor, _INT32)), read_vector(cursor, _FLOAT, binary=True))
                    for _ in range(_read_count(cursor, "the size of a frame"))
                ]
                for _ in range(frames)
            ]
        values = [
            [
                (_read_int(cursor, "a number"), read_vector_text(cursor, _FLOAT))
                for _ in range(_read_text_count(cursor, "the size of a frame"))
            ]
            for _ in range(_read_text_count(cursor, "the number of frames"))
        ]
        _end_line(cursor)
        return values

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a posterior, in binary form or as text."""
        frames = [
            [(_INT32.checked("each number", i), _checked_vector(v)) for i, v in _checked_pairs([frame])]
            for frame in checked_items("value", value)
        ]
        if binary:
            parts = [_INT32.packed(len(frames))]
            for frame in frames:
                parts.append(_INT32.packed(len(frame)))
                parts += [_INT32.packed(number) + vector_bytes(vector) for number, vector in frame]
            file.write(BINARY_HEADER + b"".join(parts))
            return
        parts = [f"{len(frames)} ".encode()]
        for frame in frames:
            parts.append(f"{len(frame)} ".encode())
            parts += [f"{number} ".encode() + vector_text(vector, self.precision) for number, vector in frame]
        file.write(b"".join(parts) + b"\n")

    def skip(self, cursor: Cursor) -> None:
        """Move past the next posterior."""
        self.shape(cursor)

    def shape(self, cursor: Cursor) -> tuple[int]:
        """Return the shape (frames,) of the next posterior."""
        binary = read_header(cursor)
        count = _read_count if binary else _read_text_count
        frames = count(cursor, "the number of frames")
        for _ in range(frames):
            for _ in range(count(cursor, "the size of a frame")):
                if binary:
                    read_binary(cursor, _INT32)
                    skip_vector(cursor)
                else:
                    _read_int(cursor, "a number")
                    skip_brackets(cursor, "a vector")
        if not binary:
            _end_line(cursor)
        return (frames,)


def _checked_vector(value: Any) -> NDArray[Any]:
    array = _FLOAT.checked_array("each vector", value)
    if array.ndim != 1:
        raise InvalidArgument(f"each vector must have one dimension (got the shape {array.shape})")
    return array


def _read_count(cursor: Cursor, what: str) -> int:
    start = cursor.position
    return _bounded(cursor, read_size(cursor, what), what, start)


def _read_text_count(cursor: Cursor, what: str) -> int:
    cursor.skip_spaces()
    start = cursor.position
    return _bounded(cursor, _read_int(cursor, what), what, start)


def _bounded(cursor: Cursor, size: int, what: str, at: int) -> int:
    if not 0 <= size <= _MOST:
        raise cursor.error(f"{what} (at most {_MOST})", str(size), at=at)
    return size


def _read_int(cursor: Cursor, what: str) -> int:
    cursor.skip_spaces()
    start = cursor.position
    return int(parse_number(cursor, token_bytes(cursor, what), _INT32, start))


def _end_line(cursor: Cursor) -> None:
    text_line(cursor, "the end of a posterior", may_lack_end=False)


def _read_frame(cursor: Cursor) -> list[tuple[int, float]]:
    size = _read_count(cursor, "the size of a frame")
    if not size:
        return []
    start = cursor.position
    head, code = _first_marks(cursor)
    rest = size * struct.calcsize(f"<BiB{code}") - len(head)
    raw = head + bytes(cursor.take(rest, "numbers with weights"))
    if size > _MANY:
        records = np.frombuffer(
            raw, [("mark", "u1"), ("number", "<i4"), ("other", "u1"), ("weight", f"<{code}")]
        )
        pairs = list(zip(records["number"].tolist(), records["weight"].tolist(), strict=True))
        good = (records["mark"] == head[0]).all() and (records["other"] == head[-1]).all()
    else:
        items = struct.unpack("<" + size * f"BiB{code}", raw)
        pairs = list(zip(items[1::4], items[3::4], strict=True))
        good = items[::4] == (head[0],) * size and items[2::4] == (head[-1],) * size
    if not good:
        raise cursor.error("pairs of an int32 and a float, with their sizes before them", at=start)
    return (
        pairs if code == _FLOAT.packing[-1] else [(number, float(np.float32(each))) for number, each in pairs]
    )


def _skip_frame(cursor: Cursor) -> None:
    size = _read_count(cursor, "the size of a frame")
    if size:
        head, code = _first_marks(cursor)
        cursor.skip(size * struct.calcsize(f"<BiB{code}") - len(head), "numbers with weights")


def _first_marks(cursor: Cursor) -> tuple[bytes, str]:
    """Return the bytes before the first weight of a frame, and the code of the precision that they say."""
    start = cursor.position
    head = bytes(cursor.take(_BEFORE_WEIGHT, "a number with a weight"))
    code = _WEIGHTS.get(head[-1])
    if code is None or head[0] != _INT32.mark:
        raise cursor.error("an int32 and a float, with their sizes before them", repr(head), at=start)
    return head, code


def _frame_starts(records: NDArray[np.int32], frames: int) -> tuple[NDArray[np.int64], int]:
    """Return the first record of each frame in `records`, and the number of records that all frames take."""
    # A negative size is a large one here.
    steps = _PAIR * records.view(np.uint32).astype(np.int64) + 1
    step = int(steps[0]) if len(steps) else 1
    if frames * step <= len(steps) and (steps[: frames * step : step] == step).all():
        return np.arange(0, frames * step, step), frames * step
    walked = steps.data
    starts: list[int] = []
    at = 0
    try:
        for _ in range(frames):
            starts.append(at)
            at += walked[at]
    except IndexError:
        is_bad = len(starts) > 1 and not at - starts[-2] <= 1 + _PAIR * _MOST
        return np.array(starts), -1 if is_bad else len(steps) + 1
    return np.array(starts), at


def _paired(starts: NDArray[np.int64], raw: bytes) -> list[list[tuple[int, float]]]:
    """Return the frames of a posterior whose records are `raw`."""
    records = np.frombuffer(raw, _RECORD)
    sizes = (np.diff(starts, append=len(records)) - 1) // _PAIR
    size = int(sizes[0])
    if 0 < size <= _MANY and (sizes == size).all():
        pairs = _PAIR_OF_RECORDS.iter_unpack(records.reshape(-1, 1 + _PAIR * size)[:, 1:].tobytes())
        return list(map(list, zip(*[pairs] * size, strict=True)))
    is_pair = np.ones(len(records), bool)
    is_pair[starts] = False
    return _divided(list(_PAIR_OF_RECORDS.iter_unpack(records[is_pair].tobytes())), sizes.tolist())


def _divided(pairs: list[tuple[int, float]], sizes: list[int]) -> list[list[tuple[int, float]]]:
    """Return the pairs of each frame."""
    end = 0
    return [pairs[end : (end := end + size)] for size in sizes]


def _checked_pairs(frames: list[Any]) -> list[Any]:
    """Return the pairs of all frames, each with two items."""
    items = chain.from_iterable(checked_items("each frame of value", frame) for frame in frames)
    pairs = [
        pair if isinstance(pair, list | tuple) else checked_items("each pair of a frame", pair)
        for pair in items
    ]
    if bad := [pair for pair in pairs if len(pair) != _PAIR]:
        raise InvalidArgument(f"value must hold pairs (got {bad[0]!r})")
    return pairs


def _united(value: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return the size of each frame of a posterior, and all its numbers and weights."""
    frames = checked_items("value", value)
    try:
        sizes = np.fromiter(map(len, frames), np.int64, len(frames))
    except TypeError:
        frames = [checked_items("each frame of value", frame) for frame in frames]
        sizes = np.fromiter(map(len, frames), np.int64, len(frames))
    try:
        pairs = [*chain.from_iterable(frames)]
        numbers = [number for number, _ in pairs]
        array = np.frombuffer(struct.pack(f"<{len(numbers)}i", *numbers), np.int32)
        weights = [weight for _, weight in pairs]
        rounded = np.frombuffer(struct.pack(f"<{len(weights)}f", *weights), np.float32)
        # A boolean, which is no number here, is packed as 0 or 1.
        is_exact = bool not in {
            type(numbers[at]) for at in np.flatnonzero(array.view(np.uint32) < _PAIR).tolist()
        }
    except (TypeError, ValueError, struct.error, OverflowError):  # the careful way says what is wrong
        is_exact = False
    if not is_exact:
        pairs = _checked_pairs(frames)
        array = np.array([_INT32.checked("each number", number) for number, _ in pairs], np.int32)
        rounded = np.array([_FLOAT.checked("each weight", weight) for _, weight in pairs], np.float32)
    return sizes, array, rounded


def _read_text(cursor: Cursor) -> list[list[tuple[int, float]]]:
    at = cursor.position
    line = text_line(cursor, "a line with a posterior", may_lack_end=False)
    if (fast := _parse_as_written(line)) is not None:
        return fast
    *parts, rest = line.split(b"]")
    if rest.strip():
        raise cursor.error("']' at the end of each frame", repr(decoded(rest[:60])), at=at)
    return [_parse_frame(cursor, part, at) for part in parts]


def _parse_as_written(line: bytes) -> list[list[tuple[int, float]]] | None:
    """Return a posterior in the form that Kaldi writes; None for other forms and numbers too large."""
    frames = parse_bracketed(line)
    if frames is None:
        return None
    sizes = [len(frame) for frame in frames]
    flat = list(chain.from_iterable(frames))
    numbers = [number for number in flat[::2] if isinstance(number, int)]
    if any(size % _PAIR for size in sizes) or len(numbers) != len(flat[::2]):
        return None
    with np.errstate(over="ignore"):
        weights = np.array(flat[1::2], np.float64).astype(np.float32)
    if (
        np.isinf(weights).any()
        or not _INT32.least <= min(numbers, default=0) <= max(numbers, default=0) <= _INT32.most
    ):
        return None
    return _divided(list(zip(numbers, weights.tolist(), strict=True)), [size // _PAIR for size in sizes])


def _parse_frame(cursor: Cursor, text: bytes, at: int) -> list[tuple[int, float]]:
    words = text.split()
    if words[:1] != [b"["] or len(words) % _PAIR == 0:
        raise cursor.error("frames such as [ 1 0.5 2 0.5 ]", repr(decoded(text[:60] + b"]")), at=at)
    numbers = (
        parse_number(cursor, word, kind, at)
        for word, kind in zip(words[1:], cycle((_INT32, _FLOAT)), strict=False)
    )
    return [(int(one), float(two)) for one, two in zip(numbers, numbers, strict=True)]
