"""Parts of audio, in seconds, and the frames that they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, SupportsFloat

import numpy as np

from seekable.errors import InvalidArgument, WrongType

__all__ = ["AudioPart", "checked_seconds", "frames_of"]


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
