"""Documents, and sequences made of pieces of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from seekable.stream.contract import Token

__all__ = ["Document", "Layout", "Piece"]


@dataclass(frozen=True, slots=True)
class Document:
    """The arrays of one item: its tokens, then those that are aligned with them."""

    arrays: tuple[NDArray[Any], ...]

    @property
    def size(self) -> int:
        """How many tokens it has, a separator included."""
        return len(self.arrays[0])


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a document."""

    token: Token
    document: Document
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many tokens it has."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Layout:
    """How documents become sequences."""

    length: int
    key: str | None
    align: tuple[str, ...]
    separator: int | None
    pad: int

    def document(self, item: Any) -> Document:
        """Return the arrays of an item, the separator at their end.

        Raises:
            InvalidArgument: it has no such arrays, or they are not of one length.
        """
        arrays = [self._array(item, name) for name in (self.key, *self.align)]
        sizes = [len(array) for array in arrays]
        if len(set(sizes)) > 1:
            message = f"aligned arrays must be as long as the tokens (got lengths {sizes} for {self._names})"
            raise InvalidArgument(message)
        if self.separator is not None:
            ends = (self.separator, *[0] * len(self.align))
            arrays = [
                np.append(array, _fitting("separator", end, array.dtype))
                for array, end in zip(arrays, ends, strict=True)
            ]
        return Document(tuple(arrays))

    def sequence(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """Return one sequence: tokens, segment ids from 1 (0 where it is padded), positions in segments."""
        segments = np.zeros(self.length, dtype=np.int32)
        positions = np.zeros(self.length, dtype=np.int32)
        out: list[NDArray[Any]] = []
        for number in range(1 + len(self.align)):
            dtype = _common({piece.document.arrays[number].dtype for piece in pieces})
            fill = 0 if number or sum(piece.size for piece in pieces) == self.length else self.pad
            out.append(np.full(self.length, _fitting("pad", fill, dtype), dtype=dtype))
        at = 0
        for segment, piece in enumerate(pieces, start=1):
            end = at + piece.size
            for target, array in zip(out, piece.document.arrays, strict=True):
                target[at:end] = array[piece.start : piece.stop]
            segments[at:end] = segment
            positions[at:end] = _COUNT[: piece.size] if piece.size <= _COUNT.size else np.arange(piece.size)
            at = end
        aligned = dict(zip(self.align, out[1:], strict=True))
        return {"tokens": out[0], "segment_ids": segments, "positions": positions, **aligned}

    @property
    def _names(self) -> str:
        return ", ".join(["the item itself" if self.key is None else repr(self.key), *map(repr, self.align)])

    def _array(self, item: Any, name: str | None) -> NDArray[Any]:
        try:
            array = np.asarray(item if name is None else item[name])
        except (KeyError, TypeError, IndexError) as error:
            message = f"pack(key={name!r}) needs items with that key (got {item!r:.200})"
            raise InvalidArgument(message) from error
        if array.ndim != 1 or (array.dtype.kind not in "iub" and array.size):
            message = (
                f"pack() needs a flat array of integers in {self._names} (got {array.dtype} of shape "
                f"{array.shape})"
            )
            raise InvalidArgument(message)
        return array if array.size else array.astype(np.int64)


def _common(dtypes: set[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the type that holds the numbers of all documents of a sequence."""
    if len(dtypes) == 1:
        return dtypes.pop()
    common = np.result_type(*dtypes)
    if common.kind not in "iub":
        message = (
            f"documents of types {sorted(map(str, dtypes))} have no integer type in common: convert them"
        )
        raise InvalidArgument(message)
    return common


def _fitting(name: str, value: int, dtype: np.dtype[Any]) -> Any:
    """Return a number as documents have them."""
    if dtype.kind != "b" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        message = f"{name}={value} is no {dtype}, which is the type of the documents' tokens"
        raise InvalidArgument(message)
    return dtype.type(value)


_COUNT = np.arange(1 << 16, dtype=np.int32)
