"""WAV files byte by byte, so that the tests need no package that writes them."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

PCM, FLOAT, ULAW, EXTENSIBLE = 1, 3, 7, 0xFFFE
GUID = bytes.fromhex("0000 1000 8000 00aa00389b71")


def form(
    kind: int = PCM, channels: int = 1, rate: int = 16000, bits: int = 16, order: str = "<", frame: int = 0
) -> bytes:
    """The content of the chunk ``fmt ``."""
    frame = frame or -(-bits // 8) * channels
    return struct.pack(f"{order}HHIIHH", kind, channels, rate, rate * frame, frame, bits)


def extensible(kind: int, bits: int, order: str = "<") -> bytes:
    guid = struct.pack(f"{order}IHH", kind, 0, 0x10) + GUID[4:]
    return form(EXTENSIBLE, bits=bits, order=order) + struct.pack(f"{order}HHI", 22, bits, 4) + guid


def chunk(name: bytes, content: bytes, order: str = "<", size: int | None = None) -> bytes:
    size = len(content) if size is None else size
    return name + struct.pack(f"{order}I", size) + content + bytes(len(content) % 2)


def wave(
    samples: bytes,
    fmt: bytes | None = None,
    *,
    tag: bytes = b"RIFF",
    riff: int | None = None,
    size: int | None = None,
    before: bytes = b"",
    after: bytes = b"",
) -> bytes:
    """A WAV file; ``riff`` and ``size`` are what its header says, if that is not the truth."""
    order = ">" if tag == b"RIFX" else "<"
    data = chunk(b"data", samples, order, size)
    body = b"WAVE" + before + chunk(b"fmt ", form() if fmt is None else fmt, order) + data + after
    return tag + struct.pack(f"{order}I", len(body) if riff is None else riff) + body


def rf64(samples: bytes, *, promised: int | None = None, tag: bytes = b"RF64") -> bytes:
    size = len(samples) if promised is None else promised
    ds64 = chunk(b"ds64", struct.pack("<QQQI", 80 + size, size, size // 2, 0))
    return wave(samples, tag=tag, riff=0xFFFFFFFF, size=0xFFFFFFFF, before=ds64)


def signal(frames: int = 2000, channels: int = 1) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Noise, float32 of shape (frames,) or (frames, channels)."""
    drawn = np.random.default_rng(frames + channels).standard_normal((frames, channels)) * 0.1
    return drawn.astype(np.float32)[:, 0] if channels == 1 else drawn.astype(np.float32)


def encoded(name: str, subtype: str | None = None, *, rate: int = 16000, **options: Any) -> bytes:
    """A file of `signal`, as soundfile writes it; ``frames`` and ``channels`` are those of `signal`."""
    import soundfile

    frames, channels = options.pop("frames", 20000), options.pop("channels", 1)
    buffer = io.BytesIO()
    with soundfile.SoundFile(buffer, "w", rate, channels, format=name, subtype=subtype, **options) as file:
        file.write(signal(frames, channels))
    return buffer.getvalue()
