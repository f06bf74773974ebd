"""Images, audio and video in records: the bytes that a place stands for, and their type.

A record is not trusted. What it says of its type is not used: types are found by the first bytes, those of a
list are shown, and all else is an attachment. Formats that can hold a script (SVG, HTML, PDF) are not in it.
A file that a record names is opened only below folders that the user gave, and only if regular: commands and
addresses are refused before any look at the disk, and a name is compared with the folders by its real path.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from seekable._arguments import checked_path
from seekable._lazy import lazy
from seekable.errors import AccessDenied, BadValue, DataNotFound, WrongType
from seekable.formats.audio.audio_bytes import BufferPayload, FilePayload, RangePayload
from seekable.formats.audio.wave_file import wave_file
from seekable.viewer.facts.key_paths import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seekable.formats.audio.audio_bytes import Payload
    from seekable.formats.kaldi.holders import wave
else:
    wave = lazy("seekable.formats.kaldi.holders.wave")

HEAD_BYTES = 64
"""The number of first bytes that ``media_type`` looks at."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://", re.ASCII)
"""The scheme of an address: `https://`, `s3://`, `file://`."""

_OPTION = "--media-root FOLDER"

_FULL_VOLUME = np.float32(1 << 15)
"""Waves of Kaldi are in the range of 16-bit integers."""

MediaKind = Literal["image", "audio", "video", "other"]


@dataclass(frozen=True, slots=True)
class MediaType:
    """The type of some bytes, and the use that a browser may make of them."""

    name: str
    """The value of the header Content-Type."""

    kind: MediaKind
    """The element that shows it; "other" is only to be saved."""

    suffix: str
    """The end of the name of a file that is saved, with its dot."""


_OTHER = MediaType("application/octet-stream", "other", ".bin")
_STARTS: dict[bytes, MediaType] = {
    b"\x89PNG\r\n\x1a\n": MediaType("image/png", "image", ".png"),
    b"\xff\xd8\xff": MediaType("image/jpeg", "image", ".jpg"),
    b"GIF87a": MediaType("image/gif", "image", ".gif"),
    b"GIF89a": MediaType("image/gif", "image", ".gif"),
    b"fLaC": MediaType("audio/flac", "audio", ".flac"),
    b"OggS\x00": MediaType("audio/ogg", "audio", ".ogg"),
    b"ID3": MediaType("audio/mpeg", "audio", ".mp3"),
}
_MP3 = _STARTS[b"ID3"]
_BMP = MediaType("image/bmp", "image", ".bmp")
_WEBM = MediaType("video/webm", "video", ".webm")
_RIFF: dict[bytes, MediaType] = {
    b"WAVE": MediaType("audio/wav", "audio", ".wav"),
    b"WEBP": MediaType("image/webp", "image", ".webp"),
}
_MP4 = MediaType("video/mp4", "video", ".mp4")
_M4A = MediaType("audio/mp4", "audio", ".m4a")
_AVIF = MediaType("image/avif", "image", ".avif")
_BRANDS: dict[bytes, MediaType] = {
    **dict.fromkeys((b"avif", b"avis"), _AVIF),
    **dict.fromkeys((b"M4A ", b"M4B "), _M4A),
    **dict.fromkeys((b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V "), _MP4),
}
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
"""The lengths of the headers that BMP has had."""


def media_type(head: bytes) -> MediaType:
    r"""Return what bytes are, by the first ``HEAD_BYTES`` of them or more.

    Example:
        >>> media_type(b"RIFF\x24\x00\x00\x00WAVEfmt ").name
        'audio/wav'
        >>> media_type(b"<svg xmlns='http://www.w3.org/2000/svg'>").kind
        'other'
    """
    for start, found in _STARTS.items():
        if head.startswith(start):
            return found
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], _OTHER)
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], _OTHER)
    if head[:4] == b"\x1a\x45\xdf\xa3" and b"\x42\x82\x84webm" in head[:HEAD_BYTES]:
        return _WEBM
    if head[:2] == b"BM" and head[6:10] == bytes(4) and int.from_bytes(head[14:18], "little") in _BMP_HEADERS:
        return _BMP
    return _MP3 if _is_mp3_frame(head[:4]) else _OTHER


def media_headers(found: MediaType, *, name: str) -> Mapping[str, str]:
    """Return the headers of an answer whose body is bytes of a record.

    A page that opens such an address directly has no origin, no script and no other address to load. Bytes
    of another type than the listed ones are saved, never shown.

    Args:
        found: what ``media_type`` returned for the bytes.
        name: the name of a saved file, without its suffix; other characters than ASCII letters, digits, ``-``
            and ``_`` become ``_``.

    Example:
        >>> media_headers(media_type(b"<html>"), name="corpus-17")["Content-Disposition"]
        'attachment; filename="corpus-17.bin"'
    """
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    how = "attachment" if found.kind == "other" else "inline"
    return {
        "Content-Type": found.name,
        "Content-Disposition": f'{how}; filename="{safe}{found.suffix}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
        "Accept-Ranges": "bytes",
    }


def _is_mp3_frame(head: bytes) -> bool:
    """Return True for the header of an MPEG audio frame, layer III, with a stated bit rate."""
    if len(head) < 4:  # noqa: PLR2004 - the header has four bytes
        return False
    word = int.from_bytes(head, "big")
    sync, version, layer = word >> 21, word >> 19 & 3, word >> 17 & 3
    bit_rate, sample_rate = word >> 12 & 15, word >> 10 & 3
    return (sync, layer) == (0x7FF, 1) and version != 1 and bit_rate not in {0, 15} and sample_rate != 3  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class MediaRoots:
    """Folders below which files that records name may be read; made by ``media_roots``."""

    folders: tuple[Path, ...]
    """Real paths of folders."""

    def open(self, name: str) -> BinaryIO:
        """Return the open file that a record names, to be closed by the caller.

        A relative name is looked for below each folder in turn.

        Raises:
            BadValue: the name is empty or not a path: a command, an address, a text with a NUL.
            AccessDenied: the file is not below a folder, or not regular (a pipe, a device, a folder).
            DataNotFound: there is no such file below a folder.
        """
        _check_name(name)
        if not self.folders:
            message = f"{name!r} is a file that a record names; such files are read only with {_OPTION}"
            raise AccessDenied(message)
        inside = [path for folder in self.folders if (path := _below(folder, name)) is not None]
        for path in inside:
            try:
                return _open_regular(path, name)
            except FileNotFoundError:
                continue
            except AccessDenied:
                raise
            except PermissionError as error:
                message = f"{name!r}, which a record names, cannot be read: {error.strerror}"
                raise AccessDenied(message) from error
            except OSError as error:
                message = f"{name!r}, which a record names, cannot be opened: {error.strerror}"
                raise BadValue(message) from error
        folders = ", ".join(str(folder) for folder in self.folders)
        if inside:
            message = f"{name!r}, which a record names, is not below {folders}"
            raise DataNotFound(message)
        message = f"{name!r}, which a record names, lies outside of {folders}; give its folder with {_OPTION}"
        raise AccessDenied(message)


def media_roots(folders: Sequence[str | os.PathLike[str]]) -> MediaRoots:
    """Return folders below which files that records name may be read.

    Raises:
        DataNotFound: one is not a folder.
    """
    real = []
    for folder in folders:
        path = checked_path(folder)
        if not os.path.isdir(path):
            message = f"{path!r} of {_OPTION} is not a folder"
            raise DataNotFound(message)
        real.append(Path(os.path.realpath(path)))
    return MediaRoots(tuple(real))


def _check_name(name: str) -> None:
    stripped = name.strip()
    wrong = {
        "is empty": not stripped,
        "is a command": stripped.startswith("|") or stripped.endswith("|"),
        "is an address": _ADDRESS.match(stripped) is not None,
        "has a NUL": "\0" in name,
    }
    for what, holds in wrong.items():
        if holds:
            message = f"{name[:200]!r}, which a record names, {what}; only paths of files are read"
            raise BadValue(message)
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        message = f"{name[:200]!r}, which a record names, is not a path: it has a lone surrogate"
        raise BadValue(message) from error


def _below(folder: Path, name: str) -> Path | None:
    """Return the real path of a name if it is below the folder, whether it exists or not."""
    path = Path(os.path.realpath(folder / name))
    return path if path != folder and path.is_relative_to(folder) else None


def _open_regular(path: Path, name: str) -> BinaryIO:
    """Open a real path without following a link at its end and without waiting for a pipe's writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    message = f"{name!r}, which a record names, is not a regular file"
    raise AccessDenied(message)


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
        WrongType: the value there is neither bytes nor audio nor the name of a file.
        BadValue: the text there is not a path.
        AccessDenied: the file is not below a folder, or not regular.
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
    """Return the samples and the rate of decoded audio; None for any other value.

    That is a pair of float32 and a rate, as ``decode="audio"`` makes it, or a wave of Kaldi.

    Example:
        >>> decoded_audio((np.zeros(8, np.float32), 16_000))[1]
        16000
        >>> decoded_audio([1, 2]) is None
        True
    """
    if hasattr(value, "rate") and isinstance(value, wave.Wave):
        samples = value.data[0] if len(value.data) == 1 else value.data.T
        return np.ascontiguousarray(samples / _FULL_VOLUME, np.float32), int(value.rate)
    if not isinstance(value, tuple) or len(value) != 2:  # noqa: PLR2004 - a pair
        return None
    samples, rate = value
    is_rate = isinstance(rate, int) and not isinstance(rate, bool) and 0 < rate < 1 << 31
    is_audio = isinstance(samples, np.ndarray) and samples.dtype == np.float32 and samples.ndim in {1, 2}
    return (samples, rate) if is_rate and is_audio else None
