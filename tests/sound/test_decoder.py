"""sk.audio: parts, what it reads of them, promises of a manifest, and wrong arguments."""

from __future__ import annotations

import gzip
import io
import math
import pickle
import sys
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.sound.waves import encoded, form, signal, wave

import seekable as sk
from seekable.formats.audio.audio_decoder import AudioDecoder
from seekable.formats.tar.field_decoders import checked_decode

RATE = 16000
SAMPLES = (signal(20000) * 32767).astype("<i2")
WAV = wave(SAMPLES.tobytes())
FORMATS = [("WAV", None), ("FLAC", None), ("MP3", None), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("AIFF", None)]
LOSSY = 3e-6
"""Decoders that start within a file differ from those that start at its beginning by rounding."""


class CountedFile(io.BytesIO):
    """A file that counts the bytes that are read of it."""

    count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.count += len(data)
        return data


class Ranges:
    """An object with a size and ranges, as sources of files are."""

    def __init__(self, data: bytes) -> None:
        self.data, self.size = data, len(data)

    def range(self, start: int, stop: int) -> memoryview:
        return memoryview(self.data)[start:stop]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(("name", "subtype"), FORMATS)
def test_each_format_is_that_of_soundfile(name: str, subtype: str | None, channels: int) -> None:
    data = encoded(name, subtype, channels=channels)
    expected, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    for payload in (data, memoryview(data), io.BytesIO(data), Ranges(data)):
        samples, found = sk.audio()(payload)
        assert (samples.dtype.name, samples.shape, found) == ("float32", (20000, 2)[:channels], rate)
        np.testing.assert_allclose(samples, expected, rtol=0, atol=LOSSY if name == "MP3" else 0)


@pytest.mark.parametrize(("name", "subtype"), FORMATS)
def test_a_part_is_the_slice_of_the_whole(name: str, subtype: str | None) -> None:
    data = encoded(name, subtype)
    whole, _ = sk.audio()(data)
    for offset, duration, first, last in [
        (0, 0.25, 0, 4000),
        (0.5, 0.25, 8000, 12000),
        (0.75, None, 12000, 20000),
    ]:
        samples, rate = sk.audio(offset=offset, duration=duration)(data)
        assert rate == RATE
        np.testing.assert_allclose(
            samples, whole[first:last], rtol=0, atol=LOSSY if subtype or name == "MP3" else 0
        )


@pytest.mark.parametrize(("name", "most"), [("WAV", 37_000), ("FLAC", 140_000)])
def test_a_part_reads_little_of_a_long_file(name: str, most: int) -> None:
    file = CountedFile(encoded(name, frames=60 * RATE))
    samples, _ = sk.audio(offset=30, duration=1)(file)
    assert len(samples) == RATE
    assert file.count <= most


def test_times_are_rounded_to_the_nearest_frame() -> None:
    samples, _ = sk.audio(offset=0.1000156, duration=0.00003125)(WAV)
    assert samples.tolist() == (SAMPLES[1600:1601] / 32768).tolist()
    assert sk.audio(offset=1.2499)(WAV)[0].size == 2


def test_audio_that_ends_within_the_part_is_an_error_or_is_kept() -> None:
    with pytest.raises(ValueError, match=r"need 20,001 frames, and it has 20,000 frames \(1.25 s at 16000"):
        sk.audio(offset=0.25, duration=1.0000625)(WAV)
    assert sk.audio(offset=0.25, duration=1)(WAV)[0].size == 16000
    assert sk.audio(offset=1, duration=60, short="keep")(WAV)[0].size == 4000
    assert sk.audio(duration=60, short="keep")(WAV)[0].size == 20000


@pytest.mark.parametrize("short", ["error", "keep"])
@pytest.mark.parametrize("name", ["WAV", "FLAC"])
def test_a_part_behind_the_end_is_an_error(name: str, short: Any) -> None:
    for offset, duration in [(1.25, None), (1.25, 1), (99, None)]:
        with pytest.raises(ValueError, match="ends before the part begins"):
            sk.audio(offset=offset, duration=duration, short=short)(encoded(name))


def test_audio_without_frames_is_an_empty_array() -> None:
    assert sk.audio()(wave(b""))[0].shape == (0,)
    assert sk.audio()(wave(b"", form(channels=3)))[0].shape == (0, 3)


def test_a_duration_of_less_than_a_frame_is_an_error() -> None:
    with pytest.raises(ValueError, match="less than one frame at 16000"):
        sk.audio(duration=1e-6)(WAV)


@pytest.mark.parametrize("name", ["WAV", "FLAC", "MP3"])
def test_fewer_frames_than_a_manifest_promises_are_an_error(name: str) -> None:
    data = encoded(name)
    assert sk.audio()(data, frames=20000)[0].size == 20000
    assert sk.audio()(data, frames=19999, rate=RATE)[0].size == 20000
    for decoder in (sk.audio(), sk.audio(duration=0.1)):
        with pytest.raises(ValueError, match="20,001 frames are promised, and it has 20,000"):
            decoder(data, frames=20001)


def test_a_manifest_may_count_frames_at_another_rate() -> None:
    opus = encoded("OGG", "OPUS")
    assert sk.audio()(opus, frames=60000, rate=48000)[0].size == 20000
    with pytest.raises(ValueError, match="20,001 frames are promised"):
        sk.audio()(opus, frames=60003, rate=48000)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"offset": -1}, sk.errors.InvalidArgument, "offset must be a number of seconds, 0 or more"),
        ({"offset": math.nan}, sk.errors.InvalidArgument, "offset must be .* nan"),
        ({"duration": math.inf}, sk.errors.InvalidArgument, "duration must be .* inf"),
        ({"duration": -0.5}, sk.errors.InvalidArgument, "duration must be"),
        ({"duration": 0}, sk.errors.InvalidArgument, "more than 0 seconds"),
        ({"offset": "1"}, sk.errors.WrongType, "offset must be a number of seconds .* str"),
        ({"offset": True}, sk.errors.WrongType, "offset must be"),
        ({"offset": b"RIFF"}, sk.errors.WrongType, r"returns a decoder.* sk.audio\(\)"),
        ({"offset": [0] * 99}, sk.errors.WrongType, r"got \[0, 0.{,80} of type list"),
        ({"short": "pad"}, sk.errors.InvalidArgument, "short must be 'error' or 'keep'"),
    ],
)
def test_a_wrong_argument_is_an_error(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sk.audio(**arguments)


@pytest.mark.parametrize("data", [b"", b"RIFF", b"x" * 5000, b"{}" * 9, bytes(5000), b"ID3" + bytes(99)])
def test_junk_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"audio needs at least 12 bytes|soundfile cannot decode this audio"):
        sk.audio()(data)


def test_an_object_without_bytes_is_an_error() -> None:
    with pytest.raises(sk.errors.WrongType, match="got an object of type dict"):
        sk.audio()({})


def test_a_decoder_is_a_value() -> None:
    decoder = sk.audio(1, 2.5, short="keep")
    assert isinstance(decoder, AudioDecoder)
    assert (decoder.name, decoder.ranged) == ("audio(offset=1.0, duration=2.5, short='keep')", True)
    assert pickle.loads(pickle.dumps(decoder)) == decoder == sk.audio(1.0, 2.5, short="keep")
    assert (sk.audio().name, repr(sk.audio()), repr(sk.audio(2))) == (
        "audio",
        "sk.audio()",
        "sk.audio(offset=2.0)",
    )


def test_the_name_audio_is_the_decoder_of_whole_files() -> None:
    decoders = checked_decode("audio")
    samples, rate = decoders.of("wav").decode(memoryview(WAV))
    assert (samples.size, rate) == (20000, RATE)
    assert decoders.of("flac.gz").decode(memoryview(gzip.compress(WAV)))[1] == RATE
    assert (decoders.of("wav").ranged, decoders.of("txt").name) == (True, "text")
    part = checked_decode(sk.audio(offset=1, duration=0.25))
    assert part.of("wav").decode(memoryview(WAV))[0].size == 4000
    assert part.described(repr) == "audio(offset=1.0, duration=0.25)"


def test_the_package_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from seekable._optional import optional
    from seekable.formats.audio import soundfile_formats

    monkeypatch.setattr(soundfile_formats, "soundfile", optional("soundfile", extra="audio"))
    monkeypatch.setitem(sys.modules, "soundfile", None)
    assert sk.audio()(WAV)[1] == RATE
    with pytest.raises(sk.MissingDependency, match=r"pip install 'seekable\[audio\]'"):
        sk.audio()(b"fLaC" + bytes(99))
