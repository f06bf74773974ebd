"""Audio of any format that soundfile reads: FLAC, MP3, Ogg (Vorbis, Opus), AIFF and others."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.formats.audio.audio_bytes import BufferPayload, PayloadFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from seekable.formats.audio.audio_bytes import AudioPart, Payload
soundfile = optional("soundfile", extra="audio")

__all__ = ["check_complete", "read_with_soundfile"]

_UNKNOWN_FRAMES = 1 << 62
"""soundfile gives a number above this one for a FLAC file that does not say how long it is."""

_BLOCK_FRAMES = 1 << 20

_MPEG_LEAD = 12 * 1152
"""A frame of MP3 may use bytes of as many frames before it; soundfile itself goes back too few."""


def _never() -> bool:
    return False


def read_with_soundfile(
    payload: Payload, part: AudioPart, check_length: Callable[[int, int], None]
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
        ValueError: it is not audio, it is cut off, or the part does not lie in it.
    """
    start = _skip_tags(payload)
    silence = lead = 0
    if _is_mpeg(payload.range(start, start + 4)):
        payload, silence = _checked_mpeg(payload, start)
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
    file: Any, part: AudioPart, check_length: Callable[[int, int], None], *, silence: int, lead: int
) -> NDArray[np.float32]:
    """Return the frames of a part.

    Args:
        file: the open file of soundfile.
        part: the part to read.
        check_length: as for `read_with_soundfile`.
        silence: the frames at the start that are not part of the audio.
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


_PAGE_HEAD_BYTES = 27
_MOST_PAGE_BYTES = _PAGE_HEAD_BYTES + 255 + 255 * 255
_LAST_PAGE = 4
"""The flag of the last page of a stream."""

_ALL_FLAGS = 7

_UNKNOWN = 0xFFFFFFFF
_W64_TAG = b"riff\x2e\x91\xcf\x11"


def check_complete(payload: Payload) -> None:
    """Check that a payload is as long as its headers promise.

    Known are Ogg (by its pages), AIFF and 8SVX, AU, CAF, W64 and NIST Sphere. Others are not checked.

    Raises:
        ValueError: the payload is shorter.
    """
    head = bytes(payload.range(0, 1024))
    if head[:4] == b"OggS":
        _check_pages(payload, head)
        return
    promised = next((size(payload, head) for tag, size in _SIZES.items() if head.startswith(tag)), None)
    if promised is not None and promised > payload.size:
        message = f"the audio file is cut off: its header promises {promised:,} bytes, not {payload.size:,}"
        raise ValueError(message)


def _check_pages(payload: Payload, head: bytes) -> None:
    """Check the last page of an Ogg file: it is whole, and ends the stream that the first page begins."""
    start = max(payload.size - 2 * _MOST_PAGE_BYTES, 0)
    tail = bytes(payload.range(start, payload.size))
    at = _last_page(tail)
    page = tail[at : at + _PAGE_HEAD_BYTES + 255]
    count = page[26] if len(page) >= _PAGE_HEAD_BYTES else _PAGE_HEAD_BYTES + 255
    lengths = page[_PAGE_HEAD_BYTES : _PAGE_HEAD_BYTES + count]
    end = at + _PAGE_HEAD_BYTES + len(lengths) + sum(lengths)
    if len(lengths) < count or end > len(tail):
        message = f"the Ogg file is cut off within its last page, which begins at byte {start + at}"
        raise ValueError(message)
    if not page[5] & _LAST_PAGE:
        message = (
            f"the Ogg file is cut off: its last page, at byte {start + at}, is not the last one of its stream"
        )
        raise ValueError(message)
    if page[14:18] != head[14:18]:
        message = "the Ogg file holds several streams, of which only the first is decoded: split the file"
        raise ValueError(message)


def _last_page(tail: bytes) -> int:
    """Return where the last page begins; 0 if there is none. Sound may hold the four bytes of its tag."""
    at = tail.rfind(b"OggS")
    while at > 0 and len(tail) >= at + 6 and (tail[at + 4] != 0 or tail[at + 5] > _ALL_FLAGS):
        at = tail.rfind(b"OggS", 0, at)
    return max(at, 0)


def _form_bytes(_: Payload, head: bytes) -> int | None:
    return (
        8 + int.from_bytes(head[4:8], "big") if head[8:12] in {b"AIFF", b"AIFC", b"8SVX", b"16SV"} else None
    )


def _au_bytes(_: Payload, head: bytes) -> int | None:
    if len(head) < 12:  # noqa: PLR2004 - the header up to the size
        return None
    start, size = struct.unpack(">II" if head[:1] == b"." else "<II", head[4:12])
    return None if size == _UNKNOWN else int(start + size)


def _w64_bytes(_: Payload, head: bytes) -> int:
    return int.from_bytes(head[16:24], "little")


def _caf_bytes(payload: Payload, _: bytes) -> int | None:
    """Return the end of the last chunk; None where the samples reach to the end of the file."""
    at = 8
    while len(chunk := bytes(payload.range(at, at + 12))) == 12:  # noqa: PLR2004 - a name and a size
        (size,) = struct.unpack(">q", chunk[4:])
        if size < 0:
            return None
        at += 12 + size
    return at


def _sphere_bytes(_: Payload, head: bytes) -> int | None:
    fields = dict(re.findall(rb"^(\w+) -\S+ (.*?)\s*$", head, re.MULTILINE))
    coding = fields.get(b"sample_coding", b"pcm")
    try:
        counts = [int(fields[name]) for name in (b"sample_count", b"channel_count", b"sample_n_bytes")]
        size = int(head[8:16]) + counts[0] * counts[1] * counts[2]
    except (KeyError, ValueError):
        return None
    return size if b"," not in coding else None


_SIZES: dict[bytes, Callable[[Payload, bytes], int | None]] = {
    b"FORM": _form_bytes,
    b".snd": _au_bytes,
    b"dns.": _au_bytes,
    b"caff": _caf_bytes,
    _W64_TAG: _w64_bytes,
    b"NIST_1A": _sphere_bytes,
}
"""How many bytes a file promises to have, by its first bytes."""


_KBITS = {
    3: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
"""Bit rates of layer III by version: 3 for MPEG 1, 2 for MPEG 2 and 2.5."""

_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_SIDE_BYTES = {(3, False): 32, (3, True): 17, (2, False): 17, (2, True): 9}
"""The bytes between the header of a frame and its data, by version and for mono."""

_SYNC, _LAYER_III, _MONO = 0x7FF, 1, 3
_HAS_FRAMES, _HAS_BYTES = 1, 2
_ID3_BYTES, _HEAD_BYTES = 10, 4
_ROOMY = 9
"""The number of a bit rate whose frames have room for a Xing header, at any sampling rate."""

_DELAY = 529
"""The samples that a decoder of MP3 gives before those of the file."""


@dataclass(frozen=True, slots=True)
class _Frame:
    word: int
    """The header, as a big-endian number of 32 bits."""

    size: int
    """The bytes of the frame, its header included."""

    samples: int
    """The samples of each channel."""

    side: int
    """The bytes between the header and the data."""

    def is_like(self, other: _Frame) -> bool:
        """Return True if both have one version, layer and sampling rate."""
        return (self.word ^ other.word) & 0xFFFE0C00 == 0


def _skip_tags(payload: Payload) -> int:
    """Return the first byte after the ID3 tags at the start of a payload."""
    at = 0
    while bytes(head := payload.range(at, at + _ID3_BYTES))[:3] == b"ID3" and len(head) == _ID3_BYTES:
        footer = _ID3_BYTES if head[5] & 0x10 else 0
        at += _ID3_BYTES + footer + sum((head[6 + i] & 0x7F) << (21 - 7 * i) for i in range(4))
    return at


def _is_mpeg(head: memoryview) -> bool:
    """Return True if these bytes begin with the header of an MP3 frame."""
    return _frame(head, 0) is not None


def _checked_mpeg(payload: Payload, start: int) -> tuple[Payload, int]:
    """Return a payload of MP3 whose samples soundfile counts rightly, after a check that it is not cut off.

    Args:
        payload: the file.
        start: the first byte after the tags.

    Returns:
        The payload, and how many samples of it are silence that is not in the file.

    Raises:
        ValueError: the payload has fewer bytes than its Xing header promises, or its last frame is cut off.
    """
    first = _frame(payload.range(start, start + _HEAD_BYTES), 0)
    if first is None:
        return payload, 0
    flags, promised = _xing(payload, start, first)
    if flags & _HAS_BYTES and start + promised > payload.size:
        message = (
            f"the MP3 file is cut off: its header promises {promised:,} bytes from byte {start} on, and "
            f"{payload.size - start:,} are there"
        )
        raise ValueError(message)
    if flags & _HAS_FRAMES:
        return payload, 0
    frames = _frames(bytes(payload.range(start, payload.size)), first)
    return BufferPayload(b"".join((*_frames_before(first, frames), *frames))), first.samples - _DELAY


def _frame(data: bytes | memoryview, at: int) -> _Frame | None:
    """Return the frame of layer III that begins at a byte of some data, if one does."""
    if len(data) < at + _HEAD_BYTES:
        return None
    word = int.from_bytes(data[at : at + _HEAD_BYTES], "big")
    version, number, rate = word >> 19 & 3, word >> 12 & 15, word >> 10 & 3
    is_reserved = version == 1 or rate not in range(3) or number not in range(1, 15)
    if word >> 21 != _SYNC or word >> 17 & 3 != _LAYER_III or is_reserved:
        return None
    table = 3 if version == 3 else 2  # noqa: PLR2004 - MPEG 1
    samples = 1152 if table == 3 else 576  # noqa: PLR2004
    size = samples // 8 * 1000 * _KBITS[table][number] // _RATES[version][rate] + (word >> 9 & 1)
    return _Frame(word, size, samples, _SIDE_BYTES[table, word >> 6 & 3 == _MONO])


def _xing(payload: Payload, start: int, first: _Frame) -> tuple[int, int]:
    """Return the flags of the Xing header and the bytes that it promises; 0 where it has none."""
    at = start + _HEAD_BYTES + first.side
    head = payload.range(at, at + 16)
    if bytes(head[:4]) not in {b"Xing", b"Info"} or len(head) < 16:  # noqa: PLR2004
        return 0, 0
    flags, *numbers = struct.unpack(">3I", head[4:])
    return flags, numbers[1 if flags & _HAS_FRAMES else 0] if flags & _HAS_BYTES else 0


def _frames(data: bytes, first: _Frame) -> list[bytes]:
    """Return the bytes of each frame in some data.

    What follows the last frame, such as a tag, is left out, as are bytes between frames.
    """
    frames, at = [], 0
    while (found := _next(data, at, first)) is not None:
        at, frame = found
        if at + frame.size > len(data):
            message = f"the MP3 file is cut off: its last frame has {len(data) - at} of {frame.size} bytes"
            raise ValueError(message)
        frames.append(data[at : at + frame.size])
        at += frame.size
    return frames


def _next(data: bytes, at: int, first: _Frame) -> tuple[int, _Frame] | None:
    """Return the next frame that is like the first, and where it begins."""
    frame = _frame(data, at)
    if frame is not None and frame.is_like(first):
        return at, frame
    while (at := data.find(b"\xff", at + 1)) >= 0:
        frame = _frame(data, at)
        # Two frames in a row, because bytes that look like a header are common.
        if frame is not None and frame.is_like(first):
            after = _frame(data, at + frame.size)
            if after is not None and after.is_like(first):
                return at, frame
    return None


def _frames_before(first: _Frame, frames: list[bytes]) -> tuple[bytes, bytes]:
    """Return a frame that says how many frames and bytes follow it, and a silent frame.

    Because of the first one, the decoder leaves out the samples of its own delay. They are silent then.
    """
    word = first.word & ~0xF200 | _ROOMY << 12 | 0x10000
    head = word.to_bytes(4, "big")
    frame = _frame(head, 0)
    assert frame is not None
    size = 2 * frame.size + sum(map(len, frames))
    numbers = struct.pack(">4s3I", b"Xing", _HAS_FRAMES | _HAS_BYTES, len(frames) + 1, size)
    return (head + bytes(frame.side) + numbers).ljust(frame.size, b"\0"), head.ljust(frame.size, b"\0")
