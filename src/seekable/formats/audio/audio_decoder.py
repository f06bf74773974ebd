"""The decoder of audio, for one field of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

from seekable._arguments import checked_count
from seekable._lazy import lazy
from seekable.errors import CorruptState, InvalidArgument, WrongType
from seekable.formats.audio.audio_bytes import AudioPart, checked_seconds, payload_of
from seekable.formats.audio.wave_file import is_wave, read_wave_frames, read_wave_header

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seekable.formats.audio import soundfile_formats
    from seekable.nodes.saving import Loading, Saving
else:
    soundfile_formats = lazy("seekable.formats.audio.soundfile_formats")

__all__ = ["AudioDecoder", "audio"]

_LEAST_BYTES = 12
"""No audio file has fewer."""


def audio(
    offset: float = 0.0,
    duration: float | None = None,
    *,
    short: Literal["error", "keep"] = "error",
) -> AudioDecoder:
    """Return a decoder of audio for ``sk.open(decode=)``: a pair of an array and the sampling rate.

    The array is float32, of shape (frames,) or, with more than one channel, (frames, channels). WAV files of
    integers or floats are read by numpy; FLAC, MP3, Ogg (Vorbis, Opus), AIFF and others by the package
    soundfile (``pip install 'seekable[audio]'``). The values are those of soundfile. Of a part no more is
    read than it needs.

    A file that is shorter than its own header promises is an error, as is a part that the audio does not
    hold. ``"audio"`` is the same as ``sk.audio()``.

    Args:
        offset: where the part begins, in seconds.
        duration: its length in seconds; all from the offset on if left out. Times are rounded to the nearest
            frame.
        short: ``"error"`` refuses audio that ends within the part; ``"keep"`` returns what is there of it, at
            least one frame.

    Raises:
        WrongType: a time is not a number.
        InvalidArgument: a time is negative, NaN or infinite, or ``duration`` is 0.

    Example:
        >>> import struct
        >>> import numpy as np
        >>> samples = np.arange(8, dtype="<i2") * 4096
        >>> form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 4, 8, 2, 16)
        >>> wav = b"RIFF" + struct.pack("<I", 52) + b"WAVE" + form + b"data" + struct.pack("<I", 16)
        >>> audio(offset=0.5, duration=1)(wav + samples.tobytes())
        (array([0.25 , 0.375, 0.5  , 0.625], dtype=float32), 4)
    """
    if isinstance(offset, bytes | bytearray | memoryview):
        message = "sk.audio() returns a decoder, and is none itself: say decode={'wav': sk.audio()}"
        raise WrongType(message)
    seconds = None if duration is None else checked_seconds("duration", duration)
    if seconds == 0:
        message = (
            f"duration must be more than 0 seconds (got {duration!r}); leave it out for all of the audio"
        )
        raise InvalidArgument(message)
    if short not in ("error", "keep"):
        message = f"short must be 'error' or 'keep' (got {short!r})"
        raise InvalidArgument(message)
    return AudioDecoder(AudioPart(checked_seconds("offset", offset), seconds, short))


@final
@dataclass(frozen=True, slots=True, repr=False)
class AudioDecoder:
    """Decodes audio, or a part of it; see `audio`. It can be pickled, and is safe from threads."""

    part: AudioPart

    kind: ClassVar[str] = "audio"

    ranged: ClassVar[bool] = True
    """The payload may be a slice of a memory map or a file, of which the decoder reads the part alone."""

    @property
    def name(self) -> str:
        """The call of ``sk.audio`` without its module, such as ``audio(offset=1.0, duration=2.0)``."""
        part = self.part
        duration = "" if part.duration is None else f", duration={part.duration}"
        short = "" if part.short == "error" else f", short={part.short!r}"
        return "audio" if part.is_whole else f"audio(offset={part.offset}{duration}{short})"

    def described(self) -> str:
        """Return what stands for the decoder in fingerprints: its name."""
        return self.name

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the part for a pipeline file."""
        part = self.part
        return {"audio": {"offset": part.offset, "duration": part.duration, "short": part.short}}

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> AudioDecoder:
        """Return the decoder that `as_json` wrote.

        Raises:
            CorruptState: it wrote no such thing.
        """
        here = f"{where}.audio"
        said = given.checked(value["audio"], dict[str, Any], here)
        try:
            return audio(**said)
        except (TypeError, ValueError) as error:
            message = f"{here}: {error}"
            raise CorruptState(message) from None

    def __repr__(self) -> str:
        """Return the call that makes this decoder."""
        return f"sk.{self.name}" if "(" in self.name else "sk.audio()"

    def __call__(
        self, payload: Any, *, frames: int | None = None, rate: int | None = None
    ) -> tuple[NDArray[np.float32], int]:
        """Decode one file.

        Args:
            payload: its bytes, a binary file, or an object with ``size`` and ``range(start, stop)``.
            frames: the least number of frames that all of the audio must have, as a manifest promises.
            rate: the sampling rate at which ``frames`` are counted, if it is not the rate of the payload.

        Returns:
            Float32 of shape (frames,) or (frames, channels), and the number of frames a second.

        Raises:
            MissingDependency: soundfile is needed, and is not installed.
            ValueError: it is not audio, it is cut off, or the part does not lie in it.
        """
        source = payload_of(payload)
        promise = _Promise(None if frames is None else checked_count("frames", frames, least=0), rate)
        head = bytes(source.range(0, _LEAST_BYTES))
        if len(head) < _LEAST_BYTES:
            message = f"audio needs at least {_LEAST_BYTES} bytes (got {source.size}: {head!r})"
            raise ValueError(message)
        if is_wave(head):
            header = read_wave_header(source)
            if header.is_plain:
                promise.check(header.frames, header.rate)
                first, last = self.part.frames(header.frames, header.rate)
                return read_wave_frames(source, header, first, last), header.rate
        return soundfile_formats.read_with_soundfile(source, self.part, promise.check)


@final
@dataclass(frozen=True, slots=True)
class _Promise:
    """The length that a manifest promises of the audio."""

    frames: int | None
    rate: int | None

    def check(self, frames: int, rate: int) -> None:
        """Check how many frames the whole audio has.

        Raises:
            ValueError: there are fewer than the manifest says.
        """
        if self.frames is None:
            return
        # Opus may be decoded at another rate than the one of its manifest.
        promised = self.frames if self.rate in {None, rate} else self.frames * rate // (self.rate or rate)
        if frames < promised:
            message = (
                f"the audio is shorter than its manifest says: {promised:,} frames are promised, and it has "
                f"{frames:,} at {rate} frames a second"
            )
            raise ValueError(message)
