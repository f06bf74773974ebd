"""Waves, and features of other toolkits: what is accepted, what is refused, and what is warned of."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.kaldi.holder_cases import cursors, dumped, riff

import seekable as sk
from seekable.errors import CorruptObject, InvalidArgument, KaldiWarning
from seekable.formats.kaldi.cursor import MemoryCursor
from seekable.kaldi import HtkMatrix, RandomAccessReader, Wave, WaveInfo, find_holder
from seekable.kaldi import read as kaldi_read

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = struct.pack("<4h", 1, -2, 32767, -32768)
FORM = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
GUID = bytes.fromhex("0100000000001000800000aa00389b71")


def wave_of(
    form: bytes, data: bytes = SAMPLES, *, before: bytes = b"", after: bytes = b"", size: int = -1
) -> bytes:
    size = len(data) if size < 0 else size
    inside = (
        b"WAVE"
        + before
        + b"fmt "
        + struct.pack("<I", len(form))
        + form
        + after
        + b"data"
        + struct.pack("<I", size)
    )
    return b"RIFF" + struct.pack("<I", len(inside) + size) + inside + data


ACCEPTED = {
    "plain": wave_of(FORM),
    "chunk before the format": wave_of(FORM, before=b"JUNK\3\0\0\0abc"),
    "chunk before the data": wave_of(FORM, after=b"LIST\4\0\0\0abcd"),
    "longer format": wave_of(FORM + b"\0\0"),
    "extensible": wave_of(b"\xfe\xff" + FORM[2:] + b"\x16\0\x10\0\0\0\0\0" + GUID),
    "big-endian": b"RIFX"
    + struct.pack(">I", 44)
    + b"WAVEfmt \0\0\0\x10"
    + struct.pack(">HHIIHH", 1, 1, 8000, 16000, 2, 16)
    + b"data\0\0\0\x08"
    + struct.pack(">4h", 1, -2, 32767, -32768),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_wave_is_read_and_its_header_too(name: str) -> None:
    for cursor in cursors(ACCEPTED[name]):
        wave = find_holder("wave").read(cursor)
        assert (wave.rate, wave.data.dtype, wave.data.tolist()) == (
            8000,
            np.float32,
            [[1, -2, 32767, -32768]],
        )
        assert wave.duration == 4 / 8000
    for cursor in cursors(ACCEPTED[name] + b"next"):
        info = find_holder("wave-info").read(cursor)
        assert info == WaveInfo(8000, 1, 4)
        assert info.duration == 4 / 8000
        assert cursor.read() == b"next"


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (struct.pack("<HHIIHH", 7, 1, 8000, 8000, 1, 8), "PCM samples of 8 to 32 bits, or floats"),
        (struct.pack("<HHIIHH", 1, 1, 8000, 64000, 8, 64), "PCM samples"),
        (struct.pack("<HHIIHH", 3, 1, 8000, 16000, 2, 16), "PCM samples"),
        (struct.pack("<HHIIHH", 1, 1, 8000, 16001, 2, 16), "consistent"),
        (struct.pack("<HHIIHH", 1, 1, 8000, 16000, 4, 16), "frames of 2 bytes"),
        (struct.pack("<HHIIHH", 1, 0, 8000, 0, 0, 16), "0 channels"),
        (FORM[:14], "at least 16 bytes"),
        (b"\xfe\xff" + FORM[2:] + b"\x16\0\x10\0\0\0\0\0" + b"\7" + GUID[1:], "PCM samples"),
    ],
)
def test_other_audio_is_refused(form: bytes, expected: str) -> None:
    for cursor in cursors(wave_of(form)):
        with pytest.raises(CorruptObject, match=expected):
            find_holder("wave").read(cursor)


@pytest.mark.parametrize(
    ("kind", "bits", "data", "expected"),
    [
        (1, 8, b"\x00\x80\xc0\xff", [-32768, 0, 16384, 32512]),
        (1, 24, b"\0\0\x40\x80\0\0\0\0\x80", [16384, 0.5, -32768]),
        (1, 32, struct.pack("<2i", 1 << 30, 1 << 15), [16384, 0.5]),
        (3, 32, struct.pack("<2f", 0.5, -1.0), [16384, -32768]),
        (3, 64, struct.pack("<d", 0.25), [8192]),
    ],
)
def test_samples_of_other_widths_are_in_the_range_of_16_bits(
    kind: int, bits: int, data: bytes, expected: list[float]
) -> None:
    width = bits // 8
    raw = wave_of(struct.pack("<HHIIHH", kind, 1, 8000, 8000 * width, width, bits), data)
    for cursor in cursors(raw):
        assert find_holder("wave").read(cursor).data.tolist() == [expected]
    assert find_holder("wave").shape(MemoryCursor(raw)) == (1, len(expected))


@pytest.mark.parametrize("channels", [1, 2])
def test_a_flac_file_that_a_line_names_is_a_wave(channels: int, tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    samples = np.random.default_rng(channels).integers(-32768, 32768, (900, channels), np.int16)
    path = tmp_path / "a.flac"
    soundfile.write(path, samples, 8000)
    (tmp_path / "wav.scp").write_text(f"u {path}\n")
    (tmp_path / "text").write_text("u-1 a\nu-2 b\n")
    (tmp_path / "segments").write_text("u-1 u 0 0.05\nu-2 u 0.05 0.1\n")
    ds = sk.open(f"scp:{tmp_path}/wav.scp")
    with RandomAccessReader(f"scp:{tmp_path}/wav.scp", "wave") as reader:
        for found in (ds[0][1], reader["u"], kaldi_read(path, "wave")):
            assert (found.rate, found.data.tolist()) == (8000, samples.T.tolist())
    shape: Any = sk.kaldi.shapes(ds)[0]
    assert list(shape) == [channels, 900]
    assert kaldi_read(path, "wave-info") == WaveInfo(8000, channels, 900)
    records = list(sk.open(f"kaldi:{tmp_path}"))
    assert [each["audio"].data.tolist() for each in records] == [
        samples.T[:, :400].tolist(),
        samples.T[:, 400:800].tolist(),
    ]
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(CorruptObject, match="expected a FLAC file"):
        kaldi_read(path, "wave")
    (tmp_path / "a.ark").write_bytes(b"u " + path.read_bytes())
    with pytest.raises(CorruptObject, match="RIFF or RIFX"):
        RandomAccessReader(f"ark:{tmp_path}/a.ark", "wave")["u"]


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFF000])
def test_a_wave_of_unknown_size_reaches_to_the_end(size: int) -> None:
    raw = riff(SAMPLES + b"x", size=size & 0x7FFFFF00 if size == 0x7FFFF000 else 0)
    raw = raw[:40] + struct.pack("<I", size) + raw[44:]
    for cursor in cursors(raw):
        assert find_holder("wave").read(cursor).data.tolist() == [[1, -2, 32767, -32768]]
    for cursor in cursors(raw):
        assert find_holder("wave-info").read(cursor).samples == -1


def test_a_wave_without_samples_is_refused() -> None:
    raw = riff(b"", size=0)
    for cursor in cursors(raw):
        with pytest.raises(CorruptObject, match="at least one sample"):
            find_holder("wave").read(cursor)


def test_a_short_wave_is_an_error_unless_it_is_kept() -> None:
    raw = riff(SAMPLES)[:-3]
    for cursor in cursors(raw):
        with pytest.raises(CorruptObject, match="8 bytes of samples"):
            find_holder("wave").read(cursor)
    for cursor in cursors(raw):
        with pytest.warns(KaldiWarning, match="expected 8 bytes of samples, found 5"):
            wave = find_holder("wave", keep_short=True).read(cursor)
        assert wave.data.tolist() == [[1, -2]]


def test_sizes_that_disagree_are_warned_of() -> None:
    raw = riff(SAMPLES)
    raw = raw[:4] + struct.pack("<I", 99) + raw[8:]
    with pytest.warns(KaldiWarning, match="sizes in the header disagree"):
        find_holder("wave").read(MemoryCursor(raw))


def test_samples_are_truncated_and_clipped() -> None:
    with pytest.warns(KaldiWarning, match="2 of 4 samples were clipped"):
        raw = dumped("wave", Wave(8000, np.array([[1.9, -1.9, 40000, -40000]], "f4")))
    assert find_holder("wave").read(MemoryCursor(raw)).data.tolist() == [[1, -1, 32767, -32768]]
    for bad in (Wave(8000, np.zeros((1, 0), "f4")), Wave(8000, np.full((1, 1), np.nan, "f4"))):
        with pytest.raises(InvalidArgument, match="data must"):
            dumped("wave", bad)
    one = np.ones((1, 1), "f4")
    whole = Wave(8000.0, one)  # type: ignore[arg-type]
    assert dumped("wave", whole) == dumped("wave", Wave(8000, one))
    with pytest.raises(InvalidArgument, match="rate"):
        dumped("wave", Wave(-1, np.zeros((1, 1), "f4")))


@pytest.mark.parametrize(
    ("kind", "why"),
    [(0o2006, "compressed"), (0o40006, "quantisation"), (0, "waveform"), (5, "irefc"), (10, "discrete")],
)
def test_htk_files_without_plain_floats_are_refused(kind: int, why: str) -> None:
    raw = struct.pack(">iihH", 1, 100_000, 4, kind) + bytes(4)
    for cursor in cursors(raw):
        with pytest.raises(CorruptObject, match=why):
            find_holder("htk-matrix").read(cursor)


def test_the_flag_of_a_checksum_is_cleared() -> None:
    raw = dumped("htk-matrix", HtkMatrix(np.ones((1, 1), "f4"), 5, 0o10006))
    found = find_holder("htk-matrix").read(MemoryCursor(raw))
    assert (found.kind, found.period) == (6, 5)


def test_sphinx_files_have_whole_frames() -> None:
    for cursor in cursors(struct.pack(">i", 14) + bytes(56)):
        with pytest.raises(CorruptObject, match="13 divides"):
            find_holder("sphinx-matrix").read(cursor)


def test_numpy_arrays_of_any_shape_and_order() -> None:
    for array in (np.zeros((2, 0, 3), "f4"), np.array(1.5), np.asfortranarray(np.arange(6.0).reshape(2, 3))):
        found = find_holder("numpy-array").read(MemoryCursor(dumped("numpy-array", array)))
        assert np.array_equal(found, array)
        assert found.dtype == array.dtype
    big = np.arange(3, dtype=">f8")
    assert find_holder("numpy-array").read(MemoryCursor(dumped("numpy-array", big))).tolist() == [0, 1, 2]


def test_a_numpy_header_with_objects_is_refused() -> None:
    raw = dumped("numpy-array", np.zeros(2))
    for cursor in cursors(raw.replace(b"<f8", b"|O8")):
        with pytest.raises(CorruptObject, match="header"):
            find_holder("numpy-array").read(cursor)
