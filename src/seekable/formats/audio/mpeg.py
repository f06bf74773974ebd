"""The frames of MP3 files, of which few files say how many there are.

soundfile guesses the length of a file without a Xing header from its first frame, and returns no more: of a
file with a variable bit rate it may return a fifth. So such files are counted here, and read with a header.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.formats.audio.payload import BufferPayload

if TYPE_CHECKING:
    from seekable.formats.audio.payload import Payload

__all__ = ["checked_mpeg", "is_mpeg", "skip_tags"]

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


def skip_tags(payload: Payload) -> int:
    """Return the first byte behind the ID3 tags at the start of a payload."""
    at = 0
    while bytes(head := payload.range(at, at + _ID3_BYTES))[:3] == b"ID3" and len(head) == _ID3_BYTES:
        footer = _ID3_BYTES if head[5] & 0x10 else 0
        at += _ID3_BYTES + footer + sum((head[6 + i] & 0x7F) << (21 - 7 * i) for i in range(4))
    return at


def is_mpeg(head: memoryview) -> bool:
    """Return True if these bytes begin with the header of an MP3 frame."""
    return _frame(head, 0) is not None


def checked_mpeg(payload: Payload, start: int) -> tuple[Payload, int]:
    """Return a payload of MP3 whose samples soundfile counts rightly, after a check that it is not cut off.

    Args:
        payload: the file.
        start: the first byte behind the tags.

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
