"""``seekable export``: write the records of data, or of a pipeline, as files of another kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.options import (
    FormatOption,
    IndexDirOption,
    JsonOption,
    NoProgressOption,
    QuietOption,
    examples,
)

if TYPE_CHECKING:
    from seekable.cli.progress_output import BuildWatch
    from seekable.dataset.dataset import Dataset
    from seekable.writing.manifest import Written

EPILOG = examples(
    "export 'corpus/*.jsonl' corpus-parquet",
    "export notes.txt notes --as jsonl --compression zst",
    "export corpus/ shuffled --shuffle 7 --rows-per-file 50000",
    "export my_pipeline:make out --jobs 8      what a function returns",
)

_FORMATS = ("parquet", "jsonl")


SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file, a folder, a quoted glob, or module:function, which returns a Dataset.",
        show_default=False,
    ),
]
FolderArgument = Annotated[
    str, typer.Argument(metavar="FOLDER", help="Where to; it holds no other data.", show_default=False)
]
TargetOption = Annotated[str, typer.Option("--as", metavar="FORMAT", help="parquet or jsonl.")]
RowsOption = Annotated[
    int, typer.Option("--rows-per-file", metavar="N", min=1, help="How many records a file holds.")
]
CompressionOption = Annotated[
    str | None,
    typer.Option(
        "--compression",
        metavar="NAME",
        help="zstd (if left out), snappy, gzip, brotli, lz4, none; of jsonl none (if left out), gz, zst.",
        show_default=False,
    ),
]
ShuffleOption = Annotated[
    int | None,
    typer.Option("--shuffle", metavar="SEED", help="Shuffle them: 0 to 2**64 - 1.", show_default=False),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Remove what another export wrote there.")]
WriteJobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="Processes that read and write; more than one where that pays, if left out.",
        show_default=False,
    ),
]


def export(  # noqa: PLR0913 - an argument for each of its options
    source: SourceArgument,
    folder: FolderArgument,
    *,
    target: TargetOption = "parquet",
    rows_per_file: RowsOption = 100_000,
    compression: CompressionOption = None,
    shuffle: ShuffleOption = None,
    overwrite: OverwriteOption = False,
    format_name: FormatOption = None,
    index_dir: IndexDirOption = None,
    jobs: WriteJobsOption = None,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write all records as Parquet or JSON lines, in their order.

    Each file appears whole or not at all. A command that was killed or interrupted goes on where it was when
    it is given again; what another command wrote is refused. Lines of text become a column "text" of Parquet.
    """
    from seekable.cli.data_argument import Opening
    from seekable.cli.progress_output import BuildWatch
    from seekable.errors import InvalidArgument

    if target not in _FORMATS:
        raise InvalidArgument(f"--as must be one of {', '.join(_FORMATS)} (got {target!r})")
    opening = Opening(
        source, format=format_name, index_dir=index_dir, jobs=jobs, progress=not no_progress, quiet=quiet
    )
    dataset = _dataset(opening, as_table=target == "parquet")
    if shuffle is not None:
        dataset = dataset.shuffle(seed=shuffle)
    arguments: dict[str, Any] = {"rows_per_file": rows_per_file, "overwrite": overwrite, "jobs": jobs}
    if compression is not None:
        arguments["compression"] = None if compression == "none" else compression
    watch = BuildWatch(bar=not no_progress, notices=not quiet)
    written = _write(dataset, folder, target, arguments, watch)
    _print(folder, written, as_json=as_json, quiet=quiet)


def _dataset(opening: Any, *, as_table: bool) -> Dataset:
    import os
    import re

    from seekable.cli.pipelines import made_by
    from seekable.dataset.dataset import Dataset
    from seekable.errors import WrongType

    source = opening.path
    if os.path.exists(source) or not re.fullmatch(r"[\w.]+:[\w.]+", source):
        opened = opening.open()
        is_text = as_table and getattr(opened, "format", None) == "text"
        return Dataset(opened).map(_as_column) if is_text else Dataset(opened)
    made = made_by(source)
    if not isinstance(made, Dataset):
        raise WrongType(f"{source} must return a Dataset (got {type(made).__name__})")
    return made


def _as_column(line: str) -> dict[str, str]:
    return {"text": line}


def _write(
    dataset: Dataset, folder: str, target: str, arguments: dict[str, Any], watch: BuildWatch
) -> Written:
    write = dataset.write_parquet if target == "parquet" else dataset.write_jsonl
    try:
        return write(folder, progress=watch, **arguments)
    finally:
        watch.close()


def _print(folder: str, written: Written, *, as_json: bool, quiet: bool) -> None:
    from seekable.cli.output import in_words, json_safe, write_document, write_line
    from seekable.storage.memory import bytes_in_words

    if as_json:
        write_document(
            {
                "folder": json_safe(folder),
                "paths": [json_safe(path) for path in written.paths],
                "files": len(written.paths),
                "files_kept": written.kept,
                "rows": written.rows,
                "holes": written.holes,
                "bytes": written.bytes,
            }
        )
    elif not quiet:
        line = f"{folder}: {in_words(written.rows, 'row')} in {in_words(len(written.paths), 'file')}, "
        line += bytes_in_words(written.bytes)
        if written.kept:
            line += f"; {in_words(written.kept, 'file')} of them from an earlier run"
        if written.holes:
            line += f"; {in_words(written.holes, 'hole')} left out"
        write_line(line)
