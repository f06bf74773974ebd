"""Segments: the utterances of a recording, and the samples that belong to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from seekable.errors import CorruptTable
from seekable.formats.kaldi.directory.scan_table import shown
from seekable.formats.kaldi.directory.text_tables import TABLES
from seekable.formats.kaldi.holders.wave import (
    Wave,
    WaveHolder,
    find_wave_part,
    read_wave_header,
    read_wave_part,
)
from seekable.formats.kaldi.objects.tokens import decoded

if TYPE_CHECKING:
    from seekable.formats.kaldi.objects.cursor import Cursor, Output

__all__ = ["Segment", "SegmentHolder", "parse_segment"]

_TO_THE_END: Final = -1.0


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a recording.

    Example:
        >>> segment = parse_segment(b"utt1 rec1 0.25 1.5")
        >>> segment.samples(8000, 60_000)
        slice(2000, 12000, None)
    """

    key: str
    """The name of the utterance."""

    recording: str
    """The name of the recording."""

    start: float
    """The start in the recording, in seconds."""

    end: float
    """The end, in seconds; -1 for the end of the recording."""

    channel: int | None = None
    """The channel, counted from 0; None for all channels."""

    def samples(self, rate: int, count: int) -> slice:
        """Return the samples of the segment, as Kaldi's ``extract-segments`` cuts them.

        Times are truncated to samples. An end less than half a second behind the last sample is taken for the
        last sample.

        Args:
            rate: the samples a second.
            count: the samples of the recording.

        Raises:
            CorruptTable: the recording does not have these samples.
        """
        start = int(self.start * rate)
        stop = count if self.end == _TO_THE_END else int(self.end * rate)
        if start >= count or (stop > count and stop >= count + rate // 2):
            message = (
                f"the segment from {self.start} s to {self.end} s lies beyond the recording "
                f"{self.recording!r}, which lasts {count / rate:.3f} s ({count:,} samples): mend segments, "
                f"or the file that wav.scp names"
            )
            raise CorruptTable(message)
        stop = min(stop, count)
        if stop <= start:
            message = (
                f"the segment from {self.start} s to {self.end} s has no sample of the recording "
                f"{self.recording!r}, at {rate:,} samples a second: mend segments"
            )
            raise CorruptTable(message)
        return slice(start, stop)

    def cut(self, recording: Wave) -> Wave:
        """Return the segment of a recording.

        Raises:
            CorruptTable: the recording does not have its samples, or not its channel.
        """
        part = recording.data[:, self.samples(recording.rate, recording.data.shape[1])].copy()
        return self.of_channel(Wave(recording.rate, part))

    def of_channel(self, part: Wave) -> Wave:
        """Return the channel of the segment, of a wave that has all channels and the samples of the segment.

        Raises:
            CorruptTable: the wave does not have the channel.
        """
        if self.channel is None:
            return part
        if self.channel >= len(part.data):
            message = (
                f"segments names the channel {self.channel} of the recording {self.recording!r}, which "
                f"has {len(part.data)} channel{'s' * (len(part.data) > 1)}, counted from 0: mend segments"
            )
            raise CorruptTable(message)
        return Wave(part.rate, part.data[self.channel : self.channel + 1].copy())


def parse_segment(line: bytes) -> Segment:
    """Return the segment of a line of ``segments``, whose end the line may have.

    Raises:
        CorruptTable: it is no such line.
    """
    if not TABLES["segments"].line.fullmatch(line.strip() + b"\n"):
        message = f"expected {TABLES['segments'].shown}, found {shown(line.strip())}"
        raise CorruptTable(message)
    key, recording, start, end, *channel = line.split()
    number = int(channel[0]) if channel else None
    return Segment(decoded(key), decoded(recording), float(start), float(end), number)


@dataclass(frozen=True, slots=True)
class SegmentHolder:
    """Reads the segment of a recording. Other samples are not touched where the file is in memory."""

    segment: Segment
    name: str = "segment"

    def read(self, cursor: Cursor) -> Wave:
        """Return the samples of the segment; the cursor stays behind them.

        Raises:
            CorruptTable: the recording does not have these samples, or not the channel.
        """
        return self.segment.of_channel(read_wave_part(cursor, self.segment.samples))

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write a wave: a segment has no form of its own."""
        WaveHolder().write(file, value, binary=binary)

    def extent(self, cursor: Cursor) -> tuple[int, int]:
        """Return the first byte of the samples of the segment, and the byte behind the last."""
        return find_wave_part(cursor, self.segment.samples)

    def skip(self, cursor: Cursor) -> None:
        """Move past the header of the recording; the samples belong to other segments too."""
        read_wave_header(cursor)

    def shape(self, cursor: Cursor) -> tuple[int, int]:
        """Return the shape (channels, samples) of the segment."""
        channels, samples = self.read(cursor).data.shape
        return channels, samples
