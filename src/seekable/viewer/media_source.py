"""The bytes that a place of a record stands for: its own, decoded audio as WAV, or a file that it names."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import WrongType
from seekable.formats.audio.payload import BufferPayload, FilePayload, RangePayload
from seekable.formats.audio.wave_file import wave_file
from seekable.formats.kaldi.holders.wave import Wave
from seekable.viewer.places import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.formats.audio.payload import Payload
    from seekable.viewer.media_roots import MediaRoots

_FULL_VOLUME = np.float32(1 << 15)
"""Waves of Kaldi are in the range of 16-bit integers."""


@contextmanager
def media_at(record: Any, at: str, roots: MediaRoots) -> Iterator[Payload]:
    """Yield the bytes that a place of a record stands for; a file is closed at the end.

    Args:
        record: a decoded record.
        at: the place, such as ``audio.bytes``.
        roots: the folders below which files that a record names are read.

    Raises:
        InvalidArgument: the place cannot be read.
        KeyNotFound: the record has no such place.
        WrongType: the value there is no bytes, no audio and no name of a file.
        BadValue: the text there is no path of a file.
        AccessDenied: the file is not below a folder, or is no regular file.
        DataNotFound: there is no such file.
    """
    value = value_at(record, at)
    if isinstance(value, bytes | bytearray | memoryview):
        yield BufferPayload(value)
    elif isinstance(value, str):
        with roots.open(value) as file:
            yield RangePayload(FilePayload(file))
    else:
        audio = decoded_audio(value)
        if audio is None:
            message = (
                f"the value at {at!r} is of type {type(value).__name__}; bytes, audio and the names of files "
                f"are sent as media"
            )
            raise WrongType(message)
        yield BufferPayload(wave_file(*audio))


def decoded_audio(value: Any) -> tuple[np.ndarray[Any, Any], int] | None:
    """Return the samples and the rate of a value that is decoded audio, None of any other value.

    That is a pair of float32 and a rate, as ``decode="audio"`` makes it, or a wave of Kaldi.

    Example:
        >>> decoded_audio((np.zeros(8, np.float32), 16_000))[1]
        16000
        >>> decoded_audio([1, 2]) is None
        True
    """
    if isinstance(value, Wave):
        samples = value.data[0] if len(value.data) == 1 else value.data.T
        return np.ascontiguousarray(samples / _FULL_VOLUME, np.float32), int(value.rate)
    if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004 - a pair
        return None
    samples, rate = value
    is_rate = isinstance(rate, int) and not isinstance(rate, bool) and 0 < rate < 1 << 31
    is_audio = isinstance(samples, np.ndarray) and samples.dtype == np.float32 and samples.ndim in {1, 2}
    return (samples, rate) if is_rate and is_audio else None
