"""Tar files of samples, plain or compressed, in the form of WebDataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self

from seekable.formats.classify import find_data
from seekable.formats.file_format import FileFormat
from seekable.formats.tar.sample_rule import SampleRule
from seekable.formats.tar.tar_archive import archive
from seekable.formats.tar.tar_format import TarSurveyor
from seekable.formats.tar.tar_samples import EncodedSample, encoded, members
from seekable.formats.tar.whole_archive import samples_in
from seekable.index.opening import open_files
from seekable.writing.compressed_files import checked_compression, one_file_compression, write_pieces
from seekable.writing.encoded_pieces import merge_encoded, write_encoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    import numpy as np
    from numpy.typing import NDArray

    from seekable.formats.file_format import Preview
    from seekable.storage.compression import Compression

__all__ = ["Tar", "tar"]


def tar(*, compression: str | None = None) -> Tar:
    """Return the format of tar files, plain or compressed.

    Args:
        compression: ``"gz"``, ``"zst"``, or None.

    Raises:
        InvalidArgument: ``compression`` is something else.
        MissingDependency: ``compression`` is ``"zst"``, and zstandard is not installed.
    """
    return Tar(checked_compression(compression))


@dataclass(frozen=True, slots=True)
class Tar(FileFormat):
    """The format of tar files: some consecutive members for each record, ``KEY.FIELD``."""

    compression: Compression | None

    name: ClassVar[str] = "tar"

    @property
    def way_out(self) -> str:
        """The advice for a record that is no sample."""
        return "make it one first, with map()"

    @property
    def suffix(self) -> str:
        """The suffix: ``.tar``, ``.tar.gz`` or ``.tar.zst``."""
        return ".tar" if self.compression is None else f".tar.{self.compression}"

    @property
    def options(self) -> dict[str, Any]:
        """The compression, as the user gave it."""
        return {"compression": self.compression}

    def of_one_file(self, name: str) -> Self:
        """Return the format with the compression of the suffix, ``.tar.gz`` for instance, or none."""
        if name.lower().endswith(".tgz") and self.compression in (None, "gz"):
            return type(self)("gz")
        return type(self)(
            one_file_compression(name, self.compression, suffixes=(".tar",), content="a tar file")
        )

    def settled(self, preview: Preview, kept: str | None) -> tuple[FileFormat, str | None]:
        """Return the format unchanged: a sample does not depend on other records."""
        return self, None

    def write(
        self, file: BinaryIO, chunks: Iterator[Any], *, first: int, beside: Sequence[BinaryIO] = ()
    ) -> None:
        """Write the members of each record; a record without a key has its number as the key."""
        write_pieces(file, archive(members(chunks, first)), self.compression)

    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        """Write the samples of one lane to a piece, encoded, each after its length."""
        for records in chunks:
            write_encoded(file, encoded(records))

    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        """Yield the samples of pieces, one at a time."""
        return merge_encoded(pieces, turns, EncodedSample)

    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        """Return the number of samples, None for a file that is not whole."""
        return samples_in(path, SampleRule())

    def index(self, path: str, *, jobs: int | None, executor: Executor | None) -> None:
        """Index the files.

        Raises:
            UnsupportedFormat: the samples of a file cannot be told apart: two records that do not follow each
                other have the same key and other fields.
            AccessDenied: the index cannot be written.
        """
        open_files(find_data(path, format_name="tar"), TarSurveyor("tar"), jobs=jobs, executor=executor)
