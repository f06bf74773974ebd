"""``seekable export``: write the records of data or a pipeline as files of another kind."""

from __future__ import annotations

import os
import re
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.shared_options import (
    DataOptions,
    ExecutorOption,
    JobsOption,
    Shown,
    argument,
    examples,
    option,
)
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from seekable.cli.data_argument import DataArgument
    from seekable.dataset.dataset import Dataset
    from seekable.stream.stream import Stream
    from seekable.writing.manifest import Written

EPILOG = examples(
    "export 'corpus/*.jsonl' corpus-parquet",
    "export notes.txt notes --as jsonl --compression zst",
    "export corpus/ shuffled --shuffle 7 --rows-per-file 50000",
    "export corpus/ one.parquet                one file",
    "export 'year=*/*.csv' out --set delimiter=';' --set partitions=hive     folders as columns",
    "export /shared/corpus /shared/parquet --executor ray:10.0.0.1:6379",
    "export my_pipeline:make out --jobs 8      what a function returns: a Dataset, or a Stream that ends",
)

_FORMATS = ("parquet", "jsonl", "tar")


def export(  # noqa: PLR0913 - an argument for each of its own options
    source: Annotated[
        str,
        argument(
            "SOURCE",
            "A file, a folder, a quoted glob, a pipeline file, or module:function, which returns a Dataset "
            "or a Stream.",
        ),
    ],
    folder: Annotated[
        str,
        argument("FOLDER", "Where to; it holds no other data. With the suffix of a format it is one file."),
    ],
    *,
    target: Annotated[
        str | None,
        option("--as", "FORMAT", "parquet, jsonl or tar; if left out, that of the suffix, or else parquet."),
    ] = None,
    rows_per_file: Annotated[
        int | None,
        option(
            "--rows-per-file",
            "N",
            "How many records a file holds; 100,000 if left out, and all of them in one file.",
            least=1,
        ),
    ] = None,
    compression: Annotated[
        str | None,
        option(
            "--compression",
            "NAME",
            "zstd (if left out), snappy, gzip, brotli, lz4, none; of jsonl and tar none (if left out), gz, "
            "zst.",
        ),
    ] = None,
    shuffle: Annotated[int | None, option("--shuffle", "SEED", "Shuffle them: 0 to 2**64 - 1.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove what another export wrote there.")
    ] = False,
    jobs: JobsOption = None,
    executor: ExecutorOption = None,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Write all records, or a stream, as Parquet, JSON lines or tar.

    Each file appears whole or not at all. A command that was killed or interrupted goes on where it was when
    it is given again; what another command wrote is refused. Lines of text become a column "text" of Parquet.
    """
    from seekable.cli.data_argument import DataArgument, executor_of
    from seekable.cli.output import BuildWatch

    target = _of_suffix(folder) if target is None else target
    if target not in _FORMATS:
        raise InvalidArgument(f"--as must be one of {', '.join(_FORMATS)} (got {target!r})")
    with executor_of(executor, jobs=jobs) as cluster:
        argument = DataArgument(source, data, shown, jobs=jobs, executor=cluster)
        records = _records(argument, as_table=target == "parquet")
        if shuffle is not None:
            records = _shuffled(records, shuffle)
        arguments: dict[str, Any] = {
            "rows_per_file": rows_per_file,
            "overwrite": overwrite,
            "jobs": jobs,
            "executor": cluster,
        }
        if compression is not None:
            arguments["compression"] = None if compression == "none" else compression
        with closing(BuildWatch(shown=not shown.quiet)) as watch:
            written = getattr(records, f"write_{target}")(folder, progress=watch, **arguments)
    _print(folder, written, as_json=shown.as_json, quiet=shown.quiet)


def _of_suffix(folder: str) -> str:
    from seekable.formats.table import card_named
    from seekable.storage.compression import uncompressed_name

    content = uncompressed_name(folder.lower())
    if content.endswith(".tar"):
        return "tar"
    return "jsonl" if content.endswith(card_named("jsonl").suffixes) else "parquet"


def _records(argument: DataArgument, *, as_table: bool) -> Dataset | Stream:
    from seekable.dataset.dataset import Dataset
    from seekable.nodes.node import node_of
    from seekable.stream.stream import Stream
    from seekable.viewer.facts.pipelines import made_by

    source = argument.path
    if os.path.exists(source) or not re.fullmatch(r"[\w.]+:[\w.]+", source):
        opened: Dataset = argument.dataset()
        is_text = as_table and getattr(node_of(opened), "format", None) == "text"
        return opened.map(_as_column) if is_text else opened
    made = made_by(source)
    if not isinstance(made, Dataset | Stream):
        raise WrongType(f"{source} must return a Dataset or a Stream (got {type(made).__name__})")
    return made


def _shuffled(records: Dataset | Stream, seed: int) -> Dataset:
    from seekable.dataset.dataset import Dataset

    if isinstance(records, Dataset):
        return records.shuffle(seed=seed)
    raise InvalidArgument(
        "--shuffle is for datasets, and this is a stream: shuffle in the function, with ds.shuffle(seed=) "
        "before ds.stream(), or with stream.shuffle(buffer=, seed=)"
    )


def _as_column(line: str) -> dict[str, str]:
    return {"text": line}


def _print(folder: str, written: Written, *, as_json: bool, quiet: bool) -> None:
    from seekable.cli.output import write_document, write_line
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.json_documents import in_words, json_safe

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
