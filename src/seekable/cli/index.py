"""``seekable index``: index data before it is read; also for other tools, with --for."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.cli.data_argument import DataArgument


EPILOG = examples(
    "index corpus.jsonl",
    "index 'web/*.jsonl' code/           two datasets",
    "index --jobs 8 --index folder=/fast/indexes 'corpus/*.jsonl'",
    "index --executor ray:10.0.0.1:6379 /shared/corpus    on a cluster of Ray",
    "index --key id corpus/              also which record has which id",
    "index --publish s3://bucket/corpus  also into s3://bucket/corpus/.seekable",
    "index --for lhotse cuts.jsonl       writes cuts.jsonl.idx, as `lhotse index jsonl` does",
    "index --for lhotse shar/ -o idx/    of all its files, as `lhotse index shar`",
    "index --for energon 'shards/*.tar'  writes .tar.idx files for Energon",
)


class Tool(StrEnum):
    """The other tools whose indexes can be written."""

    LHOTSE = "lhotse"
    ENERGON = "energon"


def index(  # noqa: PLR0913 - an argument for each of its own options
    paths: Annotated[list[str], argument("PATH", "Datasets: files, folders or quoted globs.")],
    *,
    key: Annotated[
        str | None, option("--key", "FIELD", "Keep the keys of records too, for sk.open(key=FIELD).")
    ] = None,
    pages: Annotated[
        bool,
        typer.Option("--pages", help="Find the pages of Parquet files too, which the first read else does."),
    ] = False,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish", help="Write the index of data in a store beside it, where other machines find it."
        ),
    ] = False,
    tool: Annotated[
        Tool | None,
        typer.Option(
            "--for",
            help="Write .idx files for this tool instead: for Lhotse of plain JSON lines and of tar files of "
            "pairs (Shar), for Energon of tar files, by WebDataset's samples.",
            show_default=False,
        ),
    ] = None,
    output_dir: Annotated[
        str | None, option("--output-dir -o", "FOLDER", "Write .idx files here instead of beside the data.")
    ] = None,
    jobs: JobsOption = None,
    executor: ExecutorOption = None,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Index datasets: only what is new or was changed.

    Every command does so by itself when it must; this one does it ahead. It can be interrupted at any
    time: what was indexed is kept, and the next run goes on from there.

    With --for, indexes for other tools are written instead, whole or not at all; seekable needs none of them.
    Compressed files have no such index: those of a folder are left out, and one that is named is an error.
    """
    if tool is not None or output_dir is not None:
        own = {
            "format": data.format,
            "set": data.set,
            "index": data.index,
            "jobs": jobs,
            "executor": executor,
        }
        _refuse_options({**own, "key": key, "pages": pages, "publish": publish})
        _write_for_tool(paths, _named_tool(tool), folder=output_dir, shown=shown)
        return
    from seekable.cli.data_argument import DataArgument, executor_of

    with executor_of(executor, jobs=jobs) as cluster:
        given: dict[str, Any] = {"jobs": jobs, "executor": cluster, "key": key, "publish": publish}
        arguments = [DataArgument(path, data, shown, **given) for path in paths]
        _index_all(arguments, shown, pages=pages)


def _index_all(datasets: Sequence[DataArgument], shown: Shown, *, pages: bool) -> None:
    """Index datasets, and print what was done: a line for each, or one document."""
    from seekable.cli.output import write_document, write_line

    documents = []
    for data in datasets:
        documents.append(_indexed(data, pages=pages))
        if not shown.as_json and not shown.quiet:
            write_line(_indexed_in_words(data.path, documents[-1]))
    if shown.as_json:
        write_document({"datasets": documents})


def _indexed(data: DataArgument, *, pages: bool) -> dict[str, Any]:
    """Index one dataset, and return the document about it.

    Args:
        data: the dataset.
        pages: True to find the pages of Parquet files too.
    """
    from seekable.formats.tables.tables import TableSource
    from seekable.index.location import shown_path
    from seekable.storage.file_names import INDEX_FOLDER
    from seekable.viewer.facts.data_survey import files_of
    from seekable.viewer.facts.json_documents import json_safe

    begun = time.perf_counter()
    sources = data.sources()
    for source in sources:
        if pages and isinstance(source, TableSource):
            source.walk(progress=data.watch)
            data.watch.close()
    files = files_of(sources)
    folders = dict.fromkeys(folder for each in files for folder in each.folders)
    roots = dict.fromkeys(root for each in files for root, _, _ in each.runs)
    keys = sources[0].keys if data.key is not None else None
    return {
        "path": json_safe(data.path),
        "files": sum(map(len, files)),
        "files_indexed": data.watch.files_indexed,
        "records": sum(source.size for source in sources),
        "bytes": sum(int(each.data_sizes.sum()) for each in files),
        "seconds": time.perf_counter() - begun,
        "index_folder": ", ".join(map(json_safe, folders)),
        **({"published": [f"{shown_path(root)}/{INDEX_FOLDER}" for root in roots]} if data.publish else {}),
        **({} if keys is None else {"key": data.key, "keys": keys.index.count}),
    }


def _indexed_in_words(path: str, document: dict[str, Any]) -> str:
    """Return the line about one dataset that is printed for people."""
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.json_documents import in_words

    counts = f"{in_words(document['records'], 'record')} in {in_words(document['files'], 'file')}"
    built = f"{document['files_indexed']:,} indexed in {document['seconds']:.2f} s"
    size = bytes_in_words(document["bytes"])
    published = "".join(f", published in {address}" for address in document.get("published", ()))
    return f"{path}: {counts}, {size}; {built}; index in {document['index_folder']}{published}"


def _named_tool(tool: Tool | None) -> Literal["lhotse", "energon"]:
    """Return the name of the tool that is to read the indexes.

    Raises:
        InvalidArgument: no tool is named.
    """
    if tool is None:
        message = "--output-dir is for --for lhotse and --for energon; the index of seekable goes to"
        raise InvalidArgument(f"{message} --index folder=FOLDER")
    return "lhotse" if tool is Tool.LHOTSE else "energon"


def _write_for_tool(
    paths: list[str], tool: Literal["lhotse", "energon"], *, folder: str | None, shown: Shown
) -> None:
    """Write the indexes of all files of some paths, and print what was written.

    Args:
        paths: files, folders and globs.
        tool: the tool that is to read the indexes.
        folder: the folder for all indexes, made if it is not there; None to write each beside its file.
        shown: says what is printed.

    Raises:
        InvalidArgument: two indexes would have one path, or a path is an address.
        SeekableError: a file has no such index; nothing is written before all names are looked at.
    """
    from seekable.cli.output import write_document, write_line
    from seekable.formats.shar.index_files import files_to_index, one_path_twice, write_indexes
    from seekable.viewer.facts.json_documents import json_safe

    for address in (path for path in (*paths, folder or "") if "://" in path):
        raise InvalidArgument(
            f"{address!r} is an address, and indexes of other tools are written from files of this machine "
            f"to folders of it: name a copy of the data"
        )
    found = {path: files_to_index(path, tool) for path in paths}
    files = list(dict.fromkeys(file for plain, _ in found.values() for file in plain))
    if twice := one_path_twice(files, folder):
        message = f"the indexes of {twice[0]!r} and {twice[1]!r} would both lie in {folder!r} under one name"
        raise InvalidArgument(message)
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    written: list[dict[str, Any]] = []
    for path, (plain, packed) in found.items():
        some = write_indexes(plain, tool, folder=folder)
        written += [
            {
                "path": json_safe(each.path),
                "index": json_safe(each.index),
                "records": each.records,
                "bytes": each.size,
            }
            for each in some
        ]
        if not shown.as_json and not shown.quiet:
            write_line(_in_words(path, [(each.index, each.records) for each in some], len(packed), tool))
    if shown.as_json:
        skipped = [json_safe(file) for _, packed in found.values() for file in packed]
        write_document({"tool": tool, "indexes": written, "compressed": skipped})


def _in_words(path: str, written: list[tuple[str, int]], packed: int, tool: str) -> str:
    """Return the line about one path."""
    from seekable.viewer.facts.json_documents import in_words

    records, name = in_words(sum(count for _, count in written), "record"), tool.capitalize()
    if len(written) == 1:
        line = f"{path}: {records}; index of {name} in {written[0][0]}"
    else:
        line = f"{path}: {records} in {in_words(len(written), 'file')}, each with an index of {name}"
    left_out = (
        f"; {in_words(packed, 'compressed file')} left out, which sk.open reads without" if packed else ""
    )
    return line + left_out


def _refuse_options(given: Mapping[str, object]) -> None:
    """Refuse options that only the index of seekable has.

    Args:
        given: the options of the command line by name, None or False for those that are not there.

    Raises:
        InvalidArgument: there is one.
    """
    for name, value in given.items():
        if value:
            message = (
                f"--{name} is for the index of seekable, and not for --for and --output-dir: leave it out"
            )
            raise InvalidArgument(message)
