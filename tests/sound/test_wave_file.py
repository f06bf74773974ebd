"""WAV files by numpy: equal to soundfile, whole or an error."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kaldi.holder_cases import cursors
from tests.sound.waves import EXTENSIBLE, FLOAT, PCM, ULAW, chunk, extensible, form, rf64, wave
from tests.thrift import some

import seekable as sk
from seekable.errors import CorruptObject
from seekable.formats.kaldi.holder_detection import candidates_of
from seekable.kaldi import find_holder

if TYPE_CHECKING:
    from pathlib import Path

BYTES = np.random.default_rng(1).bytes(4800)
FINITE = np.random.default_rng(2).standard_normal(600)
SHORTS = np.arange(-1000, 1000, dtype="<i2").tobytes()


def floats(kind: str) -> bytes:
    return FINITE.astype(kind).tobytes()


@pytest.mark.parametrize(
    "file",
    [
        *(
            pytest.param(
                wave(BYTES, form(PCM, channels, 16000, bits)), id=f"{bits} bits, {channels} channels"
            )
            for bits in (8, 16, 24, 32, 12, 20)
            for channels in (1, 2, 5)
        ),
        *(
            pytest.param(
                wave(BYTES, form(PCM, 2, 8000, bits, ">"), tag=b"RIFX"), id=f"{bits} bits, big-endian"
            )
            for bits in (8, 16, 24, 32)
        ),
        pytest.param(wave(floats("<f4"), form(FLOAT, bits=32)), id="float32"),
        pytest.param(wave(floats("<f8"), form(FLOAT, bits=64)), id="float64"),
        pytest.param(wave(floats(">f4"), form(FLOAT, bits=32, order=">"), tag=b"RIFX"), id="float32 big"),
        pytest.param(wave(np.array([1e300, -1e300]).tobytes(), form(FLOAT, bits=64)), id="too large"),
        pytest.param(wave(BYTES, extensible(PCM, 24)), id="extensible"),
        pytest.param(wave(floats("<f4"), extensible(FLOAT, 32)), id="extensible float"),
        pytest.param(wave(BYTES, extensible(PCM, 16, ">"), tag=b"RIFX"), id="extensible big"),
        pytest.param(rf64(SHORTS), id="RF64"),
        pytest.param(wave(BYTES, form(ULAW, bits=8)), id="mu-law, which soundfile reads"),
        pytest.param(wave(b""), id="no samples"),
        pytest.param(wave(SHORTS, before=chunk(b"junk", b"odd")), id="an odd chunk before"),
        pytest.param(wave(SHORTS, after=chunk(b"LIST", b"INFO")), id="a chunk behind"),
        pytest.param(wave(SHORTS, before=chunk(b"JUNK", bytes(70_000))), id="a long chunk before"),
        pytest.param(wave(SHORTS[:-1]), id="half a frame more than the header counts"),
    ],
)
def test_values_are_those_of_soundfile(file: bytes) -> None:
    expected, rate = soundfile.read(io.BytesIO(file), dtype="float32")
    for payload in (file, memoryview(file), bytearray(file), io.BytesIO(file)):
        samples, found = sk.audio()(payload)
        assert (samples.dtype.name, samples.shape, found) == ("float32", expected.shape, rate)
        assert samples.tobytes() == expected.tobytes()


def test_more_frames_than_are_read_at_once_are_those_of_soundfile() -> None:
    file = wave(np.random.default_rng(3).bytes((1 << 20) + 5), form(ULAW, bits=8))
    expected, _ = soundfile.read(io.BytesIO(file), dtype="float32")
    np.testing.assert_array_equal(sk.audio()(file)[0], expected)


@given(
    st.sampled_from([(1, 1), (1, 2), (1, 3), (1, 4), (3, 4), (3, 8)]),
    st.integers(1, 3),
    st.binary(max_size=99),
    st.sampled_from(["<", ">"]),
)
def test_any_bytes_are_the_values_of_soundfile(
    kind: tuple[int, int], channels: int, raw: bytes, order: str
) -> None:
    fmt = form(kind[0], channels, 16000, kind[1] * 8, order)
    raw = raw[: len(raw) - len(raw) % (kind[1] * channels)]
    file = wave(raw, fmt, tag=b"RIFF" if order == "<" else b"RIFX")
    expected, _ = soundfile.read(io.BytesIO(file), dtype="float32")
    np.testing.assert_array_equal(sk.audio()(file)[0], expected)


@pytest.mark.parametrize(
    "unknown",
    [*(0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF000, 0x7FFFFF00, 0x80000000, 0xFFFFFFDB, 0xFFFFFFFE, 0x90000000)],
)
def test_a_size_that_a_pipe_could_not_know_reaches_to_the_end(unknown: int) -> None:
    assert len(sk.audio()(wave(SHORTS, riff=unknown, size=unknown))[0]) == 2000
    with pytest.raises(ValueError, match="last frame has 1 of 2 bytes"):
        sk.audio()(wave(SHORTS[:-1], size=unknown)[:-1])


@pytest.mark.parametrize("riff", [0, 36, 4036, 0xFFFFFFFF])
def test_a_file_that_was_never_closed_is_read_to_its_end(riff: int) -> None:
    file = wave(SHORTS, riff=riff, size=0)
    assert len(sk.audio()(file)[0]) == 2000
    for cursor in cursors(file):
        assert find_holder("wave").read(cursor).data.shape == (1, 2000)


def test_compressed_samples_of_no_length_are_an_error_and_not_no_sound() -> None:
    whole = wave(SHORTS, form(ULAW, bits=8))
    assert len(sk.audio()(whole)[0]) == 4000
    with pytest.raises(ValueError, match=r"was not finished: .* and 4,000 bytes follow it.*format 7"):
        sk.audio()(wave(SHORTS, form(ULAW, bits=8), riff=0, size=0))


@pytest.mark.filterwarnings("ignore:.*the sizes in the header disagree")
def test_the_holder_of_a_script_is_told_from_any_tag_of_a_wave_file(tmp_path: Path) -> None:
    for tag, file in ((b"RIFX", wave(b"", tag=b"RIFX")), (b"BW64", rf64(SHORTS, tag=b"BW64"))):
        (tmp_path / "a.wav").write_bytes(file)
        (tmp_path / "a.scp").write_text(f"u {tmp_path}/a.wav\n")
        assert candidates_of(file[:4]) == ("wave",), tag
    assert sk.open(f"scp:{tmp_path}/a.scp")[0][1].data.shape == (1, 2000)


def test_chunks_behind_samples_of_no_length_are_no_samples() -> None:
    empty = wave(b"", after=chunk(b"LIST", b"INFO"))
    assert len(sk.audio()(empty)[0]) == 0
    with pytest.raises(ValueError, match="its samples are an empty chunk"):
        sk.audio()(empty + SHORTS)


@settings(max_examples=some(30, of=3))
@given(st.sampled_from([0, 36, 4036, 2**31, 2**32 - 1]), st.just(0) | st.integers(2**31 - 2**16, 2**32 - 1))
def test_scripts_and_archives_agree_on_sizes_that_no_writer_knew(riff: int, size: int) -> None:
    file = wave(SHORTS, riff=riff, size=size)
    try:
        expected: list[float] | None = (sk.audio()(file)[0] * 32768).tolist()
    except ValueError:
        expected = None
    for cursor in cursors(file):
        try:
            found = find_holder("wave").read(cursor).data[0].tolist()
        except CorruptObject:
            found = None
        assert found == expected


@pytest.mark.parametrize("cut", [1, 2, 100, 3990, 4000])
@pytest.mark.parametrize("whole", [wave(SHORTS), rf64(SHORTS), wave(SHORTS, form(ULAW, bits=8))])
def test_a_file_that_is_cut_off_is_an_error_in_each_part(whole: bytes, cut: int) -> None:
    for decoder in (sk.audio(), sk.audio(duration=0.001)):
        with pytest.raises(ValueError, match="cut off: its header promises 4,000 bytes"):
            decoder(whole[:-cut])


@pytest.mark.parametrize("size", range(12, 44))
def test_a_header_that_is_cut_off_is_an_error(size: int) -> None:
    with pytest.raises(ValueError, match="cut off"):
        sk.audio()(wave(SHORTS)[:size])


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            b"RIFF\0\0\0\0WAVE" + chunk(b"data", SHORTS),
            "expected the chunk 'fmt ' before the samples, found none",
        ),
        (b"RIFF\0\0\0\0WAVE" + bytes(4000), "at byte 12: expected the chunk 'data'"),
        (wave(SHORTS, form()[:14]), "at least 16 bytes, found 14 bytes"),
        (wave(SHORTS, form(channels=0, frame=2)), "0 channels of 16000 frames a second"),
        (wave(SHORTS, form(rate=0)), "1 channels of 0 frames a second"),
        (
            wave(SHORTS, form(bits=24, frame=4)),
            "frames of 3 bytes, as 1 channels of 24 bits need, found 4 bytes",
        ),
        (wave(SHORTS, form(bits=64)), "soundfile cannot decode"),
        (wave(SHORTS, form(bits=0, frame=2)), "of 0 bits need, found 2"),
        (wave(SHORTS, form(EXTENSIBLE)), "soundfile cannot decode"),
        (rf64(SHORTS, promised=1 << 40), "promises 1,099,511,627,776 bytes"),
    ],
)
def test_a_header_that_breaks_a_rule_is_an_error(file: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sk.audio()(file)


def test_any_byte_of_a_header_may_be_damaged() -> None:
    """Each file is decoded, or refused as a ValueError."""
    good = wave(SHORTS, before=chunk(b"junk", b"abc"))
    for place in range(56):
        for value in (0, 1, 127, 255):
            damaged = good[:place] + struct.pack("B", value) + good[place + 1 :]
            try:
                sk.audio()(damaged)
            except ValueError:
                continue
