"""A holder that reads the shapes of objects in place of the objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument
from seekable.kaldi import WaveInfo, find_holder

if TYPE_CHECKING:
    from seekable.kaldi import Cursor, Holder, Output, Range

__all__ = ["Shape", "ShapeHolder"]

_WAVES = frozenset({"wave", "wave-info"})
_SAMPLE_BYTES = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of an object, and of a wave also the rate and the length."""

    sizes: tuple[int, ...]
    """The shape; of a wave (channels, samples)."""

    rate: int | None = None
    """The number of samples a second; None for other objects than waves."""

    def numbers(self) -> list[int | float]:
        """Return the shape, and behind it the seconds of a wave."""
        return [*self.sizes] if self.rate is None else [*self.sizes, self.seconds]

    @property
    def seconds(self) -> float:
        """The length of a wave in seconds."""
        assert self.rate is not None
        return self.sizes[1] / self.rate

    def fields(self) -> dict[str, Any]:
        """Return the fields of a JSON document."""
        wave = {} if self.rate is None else {"rate": self.rate, "seconds": self.seconds}
        return {"shape": list(self.sizes), **wave}


@dataclass(frozen=True, slots=True)
class ShapeHolder:
    """Reads the shapes of the objects of another holder."""

    holder: Holder

    @property
    def name(self) -> str:
        """The name of the other holder."""
        return self.holder.name

    def read(self, cursor: Cursor) -> Shape:
        """Return the shape of the next object, and move past the object."""
        if self.name not in _WAVES:
            return Shape(self.holder.shape(cursor))
        info: WaveInfo = find_holder("wave-info").read(cursor)
        samples = info.samples
        if samples < 0:  # The length is not in the header, and the samples reach to the end.
            samples = len(cursor.read()) // (_SAMPLE_BYTES * info.channels)
        return Shape((info.channels, samples), info.rate)

    def read_range(self, cursor: Cursor, part: Range) -> Shape:
        """Return the shape of a part of the next object, and move past the object."""
        sizes = self.read(cursor).sizes
        cut = [part.row_slice(sizes[0], cursor.name)] if sizes else []
        if len(sizes) > 1:
            cut.append(part.column_slice(sizes[1], cursor.name))
        elif sizes:
            part.without_columns(self.name)
        return Shape(tuple(each.stop - each.start for each in cut))

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Raise InvalidArgument: a shape alone is no object."""
        raise InvalidArgument("shapes cannot be written as objects")

    def skip(self, cursor: Cursor) -> None:
        """Move past the next object."""
        self.holder.skip(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, ...]:
        """Return the shape of the next object, and move past the object."""
        return self.read(cursor).sizes
