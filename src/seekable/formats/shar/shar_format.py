"""Shar folders of Lhotse as a format: each shard is the file of its cuts and those of its fields."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NoReturn

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument
from seekable.formats.file_format import FileFormat, UnwritableRecord
from seekable.formats.lines.jsonl_writer import json_lines
from seekable.formats.shar.shar_cuts import EncodedCut, UnwritableCut, encoded_cut
from seekable.formats.shar.shar_layout import SharLayout, checked_layout
from seekable.formats.shar.shar_writer import SharShard
from seekable.formats.tar.samples import SampleRule
from seekable.formats.tar.tar_archive import samples_in
from seekable.writing.encoded_pieces import EncodedRecords, merge_encoded, write_encoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from seekable.formats.file_format import Preview

__all__ = ["SharFormat", "shar"]

_OFFSET_BYTES = 8

_SHARD_SIZE = 1000


def shar(
    fields: Mapping[str, str],
    *,
    shard_size: int = _SHARD_SIZE,
    compress_jsonl: bool = False,
    create_index: bool = True,
) -> SharFormat:
    """Return the format of a Shar folder; see ``Dataset.write_shar``.

    Args:
        fields: the fields by name, each with its kind; see ``sk.SharWriter``.
        shard_size: the records of a shard.
        compress_jsonl: True to compress JSON lines with gzip.
        create_index: True to write ``.idx`` files.

    Raises:
        WrongType, InvalidArgument: as `checked_layout`.
    """
    size = checked_count("shard_size", shard_size, least=1)
    return SharFormat(
        checked_layout(fields, compress_jsonl=compress_jsonl, create_index=create_index, include_cuts=True),
        size,
    )


@dataclass(frozen=True, slots=True)
class SharFormat(FileFormat):
    """The format of Shar folders."""

    layout: SharLayout

    shard_size: int
    """The records of a shard, where the call that writes them does not say it."""

    name: ClassVar[str] = "shar"
    hidden_suffix: ClassVar[str] = ".idx"

    @property
    def way_out(self) -> str:
        """The advice for a record that is not a cut."""
        return "make it a cut that fits first, with map()"

    @property
    def suffix(self) -> str:
        """The suffix of the files of cuts: ``.jsonl`` or ``.jsonl.gz``."""
        return ".jsonl.gz" if self.layout.compress_jsonl else ".jsonl"

    @property
    def rows_per_file(self) -> int:
        """The records of a shard."""
        return self.shard_size

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of a shard's file names, the cuts first."""
        return self.layout.patterns

    @property
    def options(self) -> dict[str, Any]:
        """The fields and the flags, as the user gave them."""
        return self.layout.options

    def of_one_file(self, name: str) -> NoReturn:
        """Raise an error, as a Shar folder is not a file."""
        message = (
            f"a Shar folder has several files: name a folder, without the suffix of a file (got {name!r})"
        )
        raise InvalidArgument(message)

    def settled(self, preview: Preview, kept: str | None) -> tuple[FileFormat, str | None]:
        """Return the format unchanged: a cut does not depend on others."""
        return self, None

    def write(
        self, file: BinaryIO, chunks: Iterator[Any], *, first: int, beside: Sequence[BinaryIO] = ()
    ) -> None:
        """Write the cuts of one shard, and their fields beside them."""
        shard = SharShard(self.layout, [file, *beside])
        for chunk in chunks:
            for cut in chunk.records if isinstance(chunk, EncodedRecords) else self._encoded(chunk):
                shard.add(cut)
        shard.end()

    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write the cuts of one lane to a piece, encoded, each after its length."""
        for records in chunks:
            write_encoded(file, self._encoded(records))

    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        """Yield the cuts of pieces, one at a time."""
        return merge_encoded(pieces, turns, EncodedCut)

    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        """Return the number of cuts, None if a file of the shard is damaged."""
        rows = _records_in(path)
        return rows if rows is not None and all(_holds(each, rows) for each in beside) else None

    def _encoded(self, records: Sequence[Any]) -> Iterator[EncodedCut]:
        for place, record in enumerate(records):
            try:
                yield encoded_cut(record, self.layout)
            except UnwritableCut as error:
                raise UnwritableRecord(len(records) - place, str(error)) from error.__cause__


def _holds(path: str, rows: int) -> bool:
    """Return True if a file is whole, and has something for each cut."""
    if path.endswith(".idx"):
        return os.path.getsize(path) == (rows + 1) * _OFFSET_BYTES
    return _records_in(path) == rows


def _records_in(path: str) -> int | None:
    if path.endswith(".tar"):
        return samples_in(path, SampleRule(pairs=True))
    return json_lines().rows_in(path)
