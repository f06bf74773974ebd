"""The bytes of one audio file, in memory, in a file, or elsewhere; parts in seconds, and their frames."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsFloat, final

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.storage.ranges import PositionedFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "AudioPart",
    "BufferPayload",
    "FilePayload",
    "Payload",
    "PayloadFile",
    "RangePayload",
    "checked_seconds",
    "frames_of",
    "payload_of",
]


_HEAD_BYTES = 4096
"""Read at once from a file, because headers are looked at in pieces of a few bytes."""

_WINDOW_BYTES = 32 * 1024
"""Read ahead for soundfile, which reads as little as 4 bytes at a time."""


class Payload(Protocol):
    """The bytes of one audio file."""

    @property
    def size(self) -> int:
        """The number of bytes of the file."""

    def range(self, start: int, stop: int) -> memoryview:
        """Return the bytes from ``start`` to ``stop``; fewer at the end."""


@final
class BufferPayload:
    """Bytes in memory, or a slice of a memory map: nothing is copied, and only what is used is read."""

    __slots__ = ("_view", "size")

    def __init__(self, data: Any) -> None:
        """View the bytes of a buffer."""
        self._view = memoryview(data).cast("B")
        self.size = self._view.nbytes

    def range(self, start: int, stop: int) -> memoryview:
        """Return a slice of the buffer."""
        return self._view[start:stop]


@final
class RangePayload:
    """A source of ranges, such as one over a mapped file, of which the first bytes are read once."""

    __slots__ = ("_head", "_source", "size")

    def __init__(self, source: Any) -> None:
        """Read the first bytes of a source."""
        self._source = source
        self.size = int(source.size)
        self._head = memoryview(source.range(0, min(_HEAD_BYTES, self.size)))

    def range(self, start: int, stop: int) -> memoryview:
        """Return bytes of the source."""
        if stop <= len(self._head):
            return self._head[start:stop]
        return memoryview(self._source.range(start, max(start, min(stop, self.size))))


@final
class FilePayload:
    """A file with a position, as the source of a `RangePayload`."""

    __slots__ = ("_file", "size")

    def __init__(self, file: Any) -> None:
        """Find the size of the file."""
        self._file = file
        self.size = int(file.seek(0, os.SEEK_END))

    def range(self, start: int, stop: int) -> memoryview:
        """Return bytes of the file; its position moves."""
        self._file.seek(start)
        parts, missing = [], stop - start
        while missing > 0 and (part := self._file.read(missing)):
            parts.append(part)
            missing -= len(part)
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))


def payload_of(data: Any) -> Payload:
    """Return the bytes that a decoder was called with as a payload.

    Args:
        data: bytes or another buffer; an object with ``size`` and ``range(start, stop)``; or an open binary
            file with ``seek`` and ``read``.

    Raises:
        WrongType: it is none of these.

    Example:
        >>> bytes(payload_of(b"RIFF....WAVE").range(8, 12))
        b'WAVE'
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return BufferPayload(data)
    if hasattr(data, "range") and hasattr(data, "size"):
        return RangePayload(data)
    if hasattr(data, "read") and hasattr(data, "seek"):
        return RangePayload(FilePayload(data))
    message = (
        f"audio is decoded from bytes, or from a binary file (got an object of type {type(data).__name__})"
    )
    raise WrongType(message)


@final
class PayloadFile(PositionedFile):
    """A file over a payload, for soundfile. Not safe from threads.

    Example:
        >>> file = PayloadFile(BufferPayload(b"abcdef"))
        >>> file.seek(2), file.read(3), file.tell()
        (2, b'cde', 5)
    """

    def __init__(self, payload: Payload) -> None:
        """Stand at the first byte; nothing is read yet."""
        super().__init__(payload.size)
        self._payload = payload
        self._start = 0
        self._window = memoryview(b"")

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read the next bytes into a buffer, and return their number; 0 at the end."""
        target = memoryview(buffer).cast("B")
        first = self._at - self._start
        piece = self._window[first : first + len(target)] if first >= 0 else self._window[:0]
        if (len(piece) < len(target) and self._start + len(self._window) < self._size) or first < 0:
            stop = self._at + max(len(target), _WINDOW_BYTES)
            self._start, self._window = self._at, self._payload.range(self._at, stop)
            piece = self._window[: len(target)]
        target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def frames_of(seconds: float, rate: float) -> int:
    """Return the number of frames of a time, rounded to the nearest one, halves upwards, as Lhotse does.

    Example:
        >>> frames_of(0.1, 16000), frames_of(0.00003125, 16000)
        (1600, 1)
    """
    return math.floor(round(seconds * rate, ndigits=8) + 0.5)


def checked_seconds(name: str, value: object) -> float:
    """Return an argument that is a time of 0 seconds or more.

    Raises:
        WrongType: it is not a number.
        InvalidArgument: it is negative, NaN or infinite.

    Example:
        >>> checked_seconds("offset", 1)
        1.0
    """
    if isinstance(value, bool | str | type | np.ndarray) or not isinstance(value, SupportsFloat):
        message = f"{name} must be a number of seconds (got {value!r:.80} of type {type(value).__name__})"
        raise WrongType(message)
    seconds = float(value)
    if not (seconds >= 0 and math.isfinite(seconds)):
        message = f"{name} must be a number of seconds, 0 or more (got {value!r})"
        raise InvalidArgument(message)
    return seconds


@dataclass(frozen=True, slots=True)
class AudioPart:
    """A part of a piece of audio."""

    offset: float
    """Where the part begins, in seconds."""

    duration: float | None
    """The length in seconds; None for all from the offset on."""

    short: Literal["error", "keep"]
    """Raise an error where the audio ends within the part, or return the shorter part."""

    @property
    def is_whole(self) -> bool:
        """True if the part is all of the audio."""
        return not self.offset and self.duration is None

    def frames(self, total: int, rate: int) -> tuple[int, int]:
        """Return the first frame of the part, and the frame after its last.

        Args:
            total: the number of frames of the audio.
            rate: the number of frames a second.

        Raises:
            ValueError: the audio ends before the part begins, or within it.
        """
        first = frames_of(self.offset, rate)
        if first >= total and self.offset:
            message = (
                f"the audio ends before the part begins: offset={self.offset:g} s, {_length(total, rate)}"
            )
            raise ValueError(message)
        if self.duration is None:
            return first, total
        count = frames_of(self.duration, rate)
        if not count:
            message = f"duration={self.duration:g} s is less than one frame at {rate} frames a second"
            raise ValueError(message)
        if first + count > total and self.short == "error":
            message = (
                f"the audio ends within the part: offset={self.offset:g} s and duration={self.duration:g} s "
                f"need {first + count:,} frames, {_length(total, rate)}; sk.audio(..., short='keep') returns "
                f"what is there"
            )
            raise ValueError(message)
        return first, min(first + count, total)


def _length(total: int, rate: int) -> str:
    return f"and it has {total:,} frames ({total / rate:g} s at {rate} frames a second)"
