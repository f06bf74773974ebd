"""Audio of any format that soundfile reads: FLAC, MP3, Ogg (Vorbis, Opus), AIFF and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.formats.audio.completeness import check_complete
from seekable.formats.audio.mpeg import checked_mpeg, is_mpeg, skip_tags
from seekable.formats.audio.payload import PayloadFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable.formats.audio.part import Part
    from seekable.formats.audio.payload import Payload

soundfile = optional("soundfile", extra="audio")

__all__ = ["read_with_soundfile"]

_UNKNOWN_FRAMES = 1 << 62
"""soundfile gives a number above this one for a FLAC file that does not say how long it is."""

_BLOCK_FRAMES = 1 << 20

_MPEG_LEAD = 12 * 1152
"""A frame of MP3 may use bytes of as many frames before it; soundfile itself goes back too few."""


def _never() -> bool:
    return False


def read_with_soundfile(
    payload: Payload, part: Part, check_length: Callable[[int, int], None]
) -> tuple[NDArray[np.float32], int]:
    """Return a part of some audio, and its rate.

    Args:
        payload: the file.
        part: the part to read; what lies before it is passed over where the format allows that.
        check_length: is called with the number of frames and the rate of all of the audio.

    Returns:
        Float32 of shape (frames,), or (frames, channels) for more than one channel; frames a second.

    Raises:
        MissingDependency: soundfile is not installed.
        ValueError: it is no audio, it is cut off, or the part does not lie in it.
    """
    start = skip_tags(payload)
    silence = lead = 0
    if is_mpeg(payload.range(start, start + 4)):
        payload, silence = checked_mpeg(payload, start)
        lead = _MPEG_LEAD
    else:
        check_complete(payload)
    try:
        with soundfile.SoundFile(PayloadFile(payload)) as file:
            return _read(file, part, check_length, silence=silence, lead=lead), int(file.samplerate)
    except soundfile.LibsndfileError as error:
        head = bytes(payload.range(0, 12))
        why = f"{error.error_string} ({payload.size:,} bytes, which begin with {head!r})"
        message = f"soundfile cannot decode this audio: {why}"
        raise ValueError(message) from None


def _read(
    file: Any, part: Part, check_length: Callable[[int, int], None], *, silence: int, lead: int
) -> NDArray[np.float32]:
    """Return the frames of a part.

    Args:
        file: the open file of soundfile.
        part: the part to read.
        check_length: as for `read_with_soundfile`.
        silence: the frames at the start that are no part of the audio.
        lead: the frames before the part that are decoded with it.
    """
    if file.frames > _UNKNOWN_FRAMES:
        # After each read soundfile seeks to where it is, which fails at the end of such a file.
        file.seekable = _never
        samples = _read_frames(file, file.frames)
        check_length(len(samples), file.samplerate)
        first, last = part.frames(len(samples), file.samplerate)
        return samples[first:last].copy()
    total = max(file.frames - silence, 0)
    check_length(total, file.samplerate)
    first, last = part.frames(total, file.samplerate)
    begin = max(first + silence - lead, 0)
    if begin:
        file.seek(begin)
    samples = _read_frames(file, last + silence - begin)[first + silence - begin :]
    if len(samples) != last - first:
        message = (
            f"the audio is cut off: {last - first:,} frames are promised from frame {first:,} on, and "
            f"{len(samples):,} are there"
        )
        raise ValueError(message)
    return np.ascontiguousarray(samples) if begin == first + silence else samples.copy()


def _read_frames(file: Any, count: int) -> NDArray[np.float32]:
    """Return the next frames of a file, fewer where it ends before, block by block.

    So a damaged header that promises billions of frames costs no memory.
    """
    blocks = []
    while True:
        wanted = min(count, _BLOCK_FRAMES)
        block = file.read(wanted, dtype="float32")
        blocks.append(block)
        count -= wanted
        if not count or len(block) < wanted:
            return np.concatenate(blocks) if len(blocks) > 1 else block
