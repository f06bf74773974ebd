"""Segments of recordings: the samples that Kaldi's extract-segments cuts, read without the others."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kaldi.holder_cases import dumped

from seekable.errors import CorruptObject, CorruptTable
from seekable.formats.kaldi.directory.utterances import SegmentHolder, UtteranceSegment, parse_segment
from seekable.kaldi import FileCursor, MemoryCursor, Wave, find_holder


def cut_by_kaldi(start: float, end: float, rate: int, count: int) -> tuple[int, int] | None:
    """Return what ``extract-segments`` does, in its types: double times, float rate, int32 samples."""
    frequency = np.float32(rate)
    first = int(np.float64(start) * np.float64(frequency))
    last = int(np.float64(end) * np.float64(frequency)) if end != -1 else count
    if first >= count:
        return None
    if last > count:
        if last >= count + int(np.float32(0.5) * frequency):
            return None
        last = count
    return (first, last) if first < last else None


@given(
    start=st.floats(0, 3),
    length=st.floats(0.0001, 3),
    to_the_end=st.booleans(),
    rate=st.sampled_from([1, 8000, 11025, 16000, 44100]),
    count=st.integers(1, 100_000),
)
def test_samples_are_those_that_kaldi_cuts(
    *, start: float, length: float, to_the_end: bool, rate: int, count: int
) -> None:
    segment = UtteranceSegment("u", "r", start, -1.0 if to_the_end else start + length)
    expected = cut_by_kaldi(start, segment.end, rate, count)
    if expected is None:
        with pytest.raises(CorruptTable):
            segment.samples(rate, count)
    else:
        assert segment.samples(rate, count) == slice(*expected)


@pytest.mark.parametrize(
    ("line", "count", "expected"),
    [
        (b"u r 0.0001 0.5", 8000, slice(0, 4000)),
        (b"u r 0.29 0.57", 8000, slice(2320, 4560)),
        (b"u r 0.5 -1", 8000, slice(4000, 8000)),
        (b"u r 0 1.4999", 8000, slice(0, 8000)),
        (b"u r 0 1", 8000, slice(0, 8000)),
        (b"u\tr  0 1e-3 0\r\n", 8000, slice(0, 8)),
    ],
)
def test_times_are_truncated_to_samples(line: bytes, count: int, expected: slice) -> None:
    assert parse_segment(line).samples(8000, count) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"u r 0 1.5", "lies beyond the recording 'r', which lasts 1.000 s"),
        (b"u r 1 1.1", "lies beyond the recording"),
        (b"u r 0.00001 0.00002", "has no sample of the recording"),
    ],
)
def test_samples_that_the_recording_lacks_are_refused(line: bytes, message: str) -> None:
    with pytest.raises(CorruptTable, match=message):
        parse_segment(line).samples(8000, 8000)


@pytest.mark.parametrize(
    "line", [b"", b"u r 0", b"u r x 1", b"u r 0 1 A", b"u r nan 1", b"u r -1 1", b"u r 0 -2"]
)
def test_other_lines_are_no_segments(line: bytes) -> None:
    with pytest.raises(CorruptTable, match="expected UTTERANCE RECORDING START END"):
        parse_segment(line)


WAVE = Wave(8000, np.arange(-8000, 8000, dtype=np.float32).reshape(8000, 2).T)


def held(wave: Wave = WAVE) -> bytes:
    return dumped(find_holder("wave"), wave)


@pytest.mark.parametrize("channel", [None, 0, 1])
def test_a_segment_of_a_file_is_the_one_of_its_samples(channel: int | None) -> None:
    segment = UtteranceSegment("u", "r", 0.25, 0.5, channel)
    channels = slice(None) if channel is None else slice(channel, channel + 1)
    for cursor in (MemoryCursor(held()), FileCursor(io.BytesIO(held()))):
        found = SegmentHolder(segment).read(cursor)
        assert found.rate == 8000
        assert found.data.dtype == np.float32
        np.testing.assert_array_equal(found.data, WAVE.data[channels, 2000:4000])
    np.testing.assert_array_equal(segment.cut(WAVE).data, WAVE.data[channels, 2000:4000])


def test_only_the_samples_of_the_segment_are_touched() -> None:
    cut = held()[: 44 + 4000 * 4]
    found = SegmentHolder(UtteranceSegment("u", "r", 0.25, 0.5)).read(MemoryCursor(cut))
    np.testing.assert_array_equal(found.data, WAVE.data[:, 2000:4000])
    with pytest.raises(CorruptObject):
        SegmentHolder(UtteranceSegment("u", "r", 0.25, 0.6)).read(MemoryCursor(cut))


def test_a_wave_of_unknown_size_is_read_to_its_end() -> None:
    raw = bytearray(held())
    raw[40:44] = b"\xff\xff\xff\xff"
    found = SegmentHolder(UtteranceSegment("u", "r", 0.75, -1.0)).read(MemoryCursor(bytes(raw)))
    np.testing.assert_array_equal(found.data, WAVE.data[:, 6000:])


def test_a_channel_that_is_not_there_is_refused() -> None:
    with pytest.raises(CorruptTable, match="names the channel 2 of the recording 'r', which has 2 channels"):
        UtteranceSegment("u", "r", 0, 1, 2).cut(WAVE)


def test_a_segment_has_the_rest_of_a_holder() -> None:
    holder = SegmentHolder(UtteranceSegment("u", "r", 0.25, 0.5))
    assert holder.shape(MemoryCursor(held())) == (2, 2000)
    cursor = MemoryCursor(held())
    holder.skip(cursor)
    assert cursor.position == 44
    assert dumped(holder, WAVE) == held()


def test_the_extent_of_a_segment_is_the_bytes_of_its_samples() -> None:
    holder = SegmentHolder(UtteranceSegment("u", "r", 0.25, 0.5))
    data = b"r " + held()
    start, end = holder.extent(MemoryCursor(data, position=2))
    samples = np.frombuffer(data[start:end], "<i2").reshape(-1, 2).T
    np.testing.assert_array_equal(samples, WAVE.data[:, 2000:4000])
    raw = bytearray(held())
    raw[40:44] = b"\xff\xff\xff\xff"
    assert holder.extent(MemoryCursor(bytes(raw))) == (44, 44)
