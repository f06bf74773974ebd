"""Files that are cut off anywhere are errors, in each format that says how long it is."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.sound.waves import encoded

import seekable as sk
from seekable.formats.audio.audio_bytes import BufferPayload
from seekable.formats.audio.soundfile_formats import _frame, check_complete

CHECKED = [
    *(("FLAC", "PCM_16"), ("MP3", None), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("AIFF", "PCM_16")),
    *(("AIFF", "ULAW"), ("AU", "PCM_16"), ("CAF", "PCM_16"), ("CAF", "FLOAT"), ("W64", "PCM_16")),
    *(("NIST", "PCM_16"), ("NIST", "ULAW"), ("SVX", "PCM_S8"), ("SVX", "PCM_16"), ("WAV", "MS_ADPCM")),
]


@pytest.mark.parametrize(("name", "subtype"), CHECKED)
def test_a_file_that_is_cut_off_is_an_error(name: str, subtype: str | None) -> None:
    data = encoded(name, subtype, frames=9000)
    assert len(sk.audio()(data)[0]) >= 9000
    for cut in (1, 2, 3, 10, 100, len(data) // 2, len(data) - 100, len(data) - 13):
        with pytest.raises(ValueError, match=r"cut off|soundfile cannot decode"):
            sk.audio()(data[: len(data) - cut])


@pytest.mark.parametrize(("name", "subtype"), CHECKED[1:4])
def test_a_part_of_a_compressed_file_that_is_cut_off_is_an_error(name: str, subtype: str | None) -> None:
    data = encoded(name, subtype)
    with pytest.raises(ValueError, match="cut off"):
        sk.audio(duration=0.1)(data[:-100])


def test_an_ogg_file_without_its_last_page_is_an_error() -> None:
    data = encoded("OGG", "VORBIS", frames=60000)
    with pytest.raises(ValueError, match="is not the last one of its stream"):
        sk.audio()(data[: data.rindex(b"OggS")])


def test_the_last_page_of_an_ogg_file_may_be_empty() -> None:
    """Some encoders end a stream with a page that holds no sound."""
    data = encoded("OGG", "VORBIS")
    last = data.rindex(b"OggS")
    page = bytearray(data[last:])
    page[5] = 4
    page[26:] = bytes([0])
    check_complete(BufferPayload(data[:last] + bytes(page)))
    with pytest.raises(ValueError, match="cut off within its last page"):
        check_complete(BufferPayload(data[:last] + bytes(page[:-1])))


def test_sound_may_hold_the_tag_of_a_page() -> None:
    data = encoded("OGG", "VORBIS")
    check_complete(BufferPayload(data[:-40] + b"OggSound" + data[-32:]))


def test_an_ogg_file_of_several_streams_is_an_error() -> None:
    with pytest.raises(ValueError, match="several streams, of which only the first is decoded"):
        sk.audio()(encoded("OGG", "VORBIS", frames=9000) + encoded("OGG", "VORBIS", frames=5000))


def test_a_flac_file_of_unknown_length_is_read_to_its_end() -> None:
    data = bytearray(encoded("FLAC"))
    expected, _ = sk.audio()(bytes(data))
    data[21] &= 0xF0  # the upper bits of the number of samples
    data[22:26] = bytes(4)
    np.testing.assert_array_equal(sk.audio()(data)[0], expected)
    np.testing.assert_array_equal(sk.audio(offset=1, duration=0.125)(data)[0], expected[16000:18000])
    with pytest.raises(ValueError, match="20,001 frames are promised"):
        sk.audio()(data, frames=20001)
    with pytest.raises(ValueError, match="soundfile cannot decode"):
        sk.audio()(data[:-100])


@pytest.mark.parametrize("channels", [1, 2])
def test_a_header_that_promises_billions_of_frames_costs_no_memory(channels: int) -> None:
    data = bytearray(encoded("FLAC", channels=channels))
    data[21:26] = b"\xff" * 5
    with pytest.raises(ValueError, match=r"cut off|cannot decode"):
        sk.audio()(data)


def without_header(data: bytes) -> bytes:
    """An MP3 file without its first frame, which says how many follow."""
    first = _frame(memoryview(data), 0)
    assert first is not None
    return data[first.size :]


@pytest.mark.parametrize("rate", [16000, 44100])
@pytest.mark.parametrize("channels", [1, 2])
def test_an_mp3_file_of_variable_rate_without_a_header_is_read_to_its_end(rate: int, channels: int) -> None:
    """Soundfile guesses its length from the first frame, and ends there."""
    options: dict[str, Any] = {"bitrate_mode": "VARIABLE", "compression_level": 0.9, "frames": 30000}
    data = without_header(encoded("MP3", rate=rate, channels=channels, **options))
    samples, _ = sk.audio()(data)
    assert len(samples) >= 30000
    assert len(samples) % 576 == 0
    beginning, _ = soundfile.read(io.BytesIO(data), dtype="float32")
    np.testing.assert_allclose(samples[:2000], beginning[:2000], rtol=0, atol=1e-6)
    part, _ = sk.audio(offset=10000 / rate, duration=1000 / rate)(data)
    np.testing.assert_allclose(part, samples[10000:11000], rtol=0, atol=1e-5)


def test_tags_around_an_mp3_file_are_passed_over() -> None:
    data = without_header(encoded("MP3", bitrate_mode="CONSTANT"))
    expected, _ = sk.audio()(data)
    id3 = b"ID3\x04\0\0\0\0\1\0" + bytes(128)
    for tagged in (id3 + data, data + b"TAG" + bytes(125), id3 + id3 + data + b"APETAGEX" + bytes(2000)):
        np.testing.assert_array_equal(sk.audio()(tagged)[0], expected)


def test_bytes_between_the_frames_of_an_mp3_file_are_passed_over() -> None:
    data = without_header(encoded("MP3", bitrate_mode="CONSTANT"))
    first = _frame(memoryview(data), 0)
    assert first is not None
    count = len(sk.audio()(data)[0])
    damaged = data[: 4 * first.size] + b"\xff\xf3 junk" + data[4 * first.size :]
    assert abs(len(sk.audio()(damaged)[0]) - count) <= first.samples


def test_an_mp3_file_with_a_cut_last_frame_is_an_error() -> None:
    data = without_header(encoded("MP3", bitrate_mode="CONSTANT"))
    with pytest.raises(ValueError, match="its last frame has"):
        sk.audio()(data[:-5])
    whole = encoded("MP3")
    place = whole.index(b"Xing") + 12
    with pytest.raises(ValueError, match="promises 9,000,000 bytes"):
        sk.audio()(whole[:place] + struct.pack(">I", 9_000_000) + whole[place + 4 :])
