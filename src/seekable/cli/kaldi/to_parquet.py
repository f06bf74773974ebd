"""``seekable kaldi to-parquet``: a table as a Parquet file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from seekable.cli.kaldi.table_options import HolderOption, PipesChoice, PipesOption, RspecifierArgument
from seekable.cli.options import JsonOption, NoProgressOption, QuietOption, examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.cli.kaldi.entry_count import EntryCount
    from seekable.kaldi import Holder

EPILOG = examples(
    "kaldi to-parquet scp:feats.scp feats.parquet",
    "kaldi to-parquet ark:feats.ark feats.parquet --flat",
    "kaldi to-parquet 'ark:gunzip -c ali.1.gz |' ali.parquet --holder int32-vector",
)

_ROW_GROUP_ROWS = 1 << 16
"""The most rows of a row group, which also ends at 64 MiB."""


def to_parquet(  # noqa: PLR0913 - an argument for each of its options
    rspecifier: RspecifierArgument,
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="The file to write: *.parquet.", show_default=False)
    ],
    *,
    holder: HolderOption = None,
    flat: Annotated[
        bool, typer.Option("--flat", help="Matrices as one list, with their shape in a column beside it.")
    ] = False,
    compression: Annotated[
        str, typer.Option("--compression", metavar="NAME", help="zstd, snappy, gzip, brotli, lz4 or none.")
    ] = "zstd",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    pipes: PipesOption = PipesChoice.SPECIFIER,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a table as a Parquet file, with the columns key and value.

    The types of the columns are those of the objects: a matrix is a list of its rows, a posterior a list of
    frames. The file appears whole or not at all. Memory is bounded, however long the table is.
    """
    from seekable.cli.kaldi.entry_count import counted, print_outcome
    from seekable.cli.kaldi.holder_choice import chosen_holder
    from seekable.cli.kaldi.targets import as_rspecifier
    from seekable.kaldi import SequentialReader, find_holder
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.documents import json_safe

    _check(out, overwrite=overwrite)
    rspecifier = as_rspecifier(rspecifier)
    found = find_holder(chosen_holder(holder, rspecifier, pipes.value))
    with (
        counted("Wrote", shown=not no_progress and not quiet) as entries,
        SequentialReader(rspecifier, found, pipes=pipes.value) as reader,
    ):
        size = _write(reader, found, out, entries, compression, flat=flat)
    print_outcome(
        {"path": json_safe(out), "rows": entries.done, "bytes": size},
        f"{entries.in_words()} to {out} ({bytes_in_words(size)})",
        as_json=as_json,
        quiet=quiet,
    )


def _check(out: str, *, overwrite: bool) -> None:
    from seekable.errors import InvalidArgument
    from seekable.storage.paths import exists

    if exists(out) and not overwrite:
        message = f"{out!r} is there already: name another file, or replace it with --overwrite"
        raise InvalidArgument(message)


def _write(
    reader: Any, holder: Holder, out: str, entries: EntryCount, compression: str, *, flat: bool
) -> int:
    """Write the entries of a reader, and return the number of bytes of the file."""
    from seekable.cli.kaldi.parquet_columns import table_columns
    from seekable.formats.tables.parquet_writer import parquet
    from seekable.writing.whole_file import write_whole

    columns = table_columns(holder, flat=flat)
    form = parquet(
        schema=columns.schema,
        compression=None if compression == "none" else compression,
        row_group_rows=_ROW_GROUP_ROWS,
    ).of_one_file(out)

    def pairs() -> Any:
        for pair in reader:
            yield pair
            entries.count()
        reader.close()  # A failed command is an error before the file appears.

    def write(file: BinaryIO, _: Sequence[BinaryIO]) -> None:
        form.write(file, columns.batches(pairs()), first=0)

    return write_whole(out, write, form=form, named=lambda _: "an entry")
