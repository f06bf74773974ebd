"""``seekable index``: index data before it is read; also for other tools, with --lhotse and --energon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.shared_options import DataOptions, ExecutorOption, Without, argument, examples, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seekable.cli.data_argument import DataArgument
    from seekable.formats.shar.index_files import Tool


EPILOG = examples(
    "index corpus.jsonl",
    "index 'web/*.jsonl' code/           two datasets",
    "index --jobs 8 --index-dir /fast/indexes 'corpus/*.jsonl'",
    "index --executor ray:10.0.0.1:6379 /shared/corpus    on a cluster of Ray",
    "index --key id corpus/              also which record has which id",
    "index --publish s3://bucket/corpus  also into s3://bucket/corpus/.seekable",
    "index --lhotse cuts.jsonl           writes cuts.jsonl.idx, as `lhotse index jsonl` does",
    "index --lhotse shar/ -o indexes/    of all its files, as `lhotse index shar`",
    "index --energon 'shards/*.tar'      writes .tar.idx files for Energon",
)


def index(  # noqa: PLR0913 - an argument for each of its own options
    paths: Annotated[list[str], argument("PATH", "Datasets: files, folders or quoted globs.")],
    *,
    executor: ExecutorOption = None,
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
    most_bytes: Annotated[
        int | None,
        option(
            "--most-bytes",
            "BYTES",
            "Refuse, before the first one, to transfer more bytes than this from a store.",
            least=0,
        ),
    ] = None,
    lhotse: Annotated[
        bool,
        typer.Option(
            "--lhotse", help="Write Lhotse's .idx of plain JSON lines and of tar files of pairs (Shar)."
        ),
    ] = False,
    energon: Annotated[
        bool,
        typer.Option("--energon", help="Write Energon's .tar.idx of tar files, by WebDataset's samples."),
    ] = False,
    output_dir: Annotated[
        str | None, option("--output-dir -o", "FOLDER", "Write .idx files here instead of beside the data.")
    ] = None,
    data: Annotated[DataOptions, Without("refresh")],
) -> None:
    """Index datasets: only what is new or was changed.

    Every command does so by itself when it must; this one does it ahead. It can be interrupted at any
    time: what was indexed is kept, and the next run goes on from there.

    With --lhotse or --energon, indexes for these tools are written instead, whole or not at all; seekable
    needs none of them. Compressed files have no such index: those of a folder are left out, and one that is
    named is an error.
    """
    if lhotse or energon or output_dir is not None:
        tool = _tool(lhotse=lhotse, energon=energon)
        _refuse_options(
            {
                "--format": data.format_name,
                "--index-dir": data.index_dir,
                "--allow": data.allow,
                "--jobs": data.jobs,
                "--executor": executor,
                "--key": key,
                "--pages": pages,
                "--publish": publish,
                "--most-bytes": most_bytes,
            }
        )
        _write_for_tool(paths, tool, folder=output_dir, quiet=data.quiet, as_json=data.as_json)
        return
    from seekable.cli.data_argument import DataArgument, executor_of

    with executor_of(executor, jobs=data.jobs) as cluster:
        arguments: dict[str, Any] = {
            "executor": cluster,
            "key": key,
            "most_bytes": most_bytes,
            "publish": publish,
        }
        index_all(((path, DataArgument(path, data, **arguments)) for path in paths), data, pages=pages)


def index_all(
    named: Iterable[tuple[str, DataArgument]], options: DataOptions, *, pages: bool = False
) -> None:
    """Index datasets, and print what was done: a line for each, or one document.

    Args:
        named: the datasets, each with its name on the command line.
        options: say what is printed.
        pages: True to find the pages of Parquet files too.
    """
    from seekable.cli.output import write_document, write_line

    documents = []
    for path, data in named:
        documents.append(_indexed(data, pages=pages))
        if not options.as_json and not options.quiet:
            write_line(_indexed_in_words(path, documents[-1]))
    if options.as_json:
        write_document({"datasets": documents})


def _indexed(data: DataArgument, *, pages: bool) -> dict[str, Any]:
    """Index one dataset, and return the document about it.

    Args:
        data: the dataset.
        pages: True to find the pages of Parquet files too.
    """
    import time

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


def _tool(*, lhotse: bool, energon: bool) -> Tool:
    """Return the tool that is to read the indexes.

    Raises:
        InvalidArgument: no tool is named, or two are.
    """
    from seekable.errors import InvalidArgument

    if lhotse == energon:
        raise InvalidArgument(
            "name one of --lhotse and --energon: both write FILE.idx, with another last number"
            if lhotse
            else "--output-dir is for --lhotse and --energon; the index of seekable goes to --index-dir"
        )
    return "lhotse" if lhotse else "energon"


def _write_for_tool(paths: list[str], tool: Tool, *, folder: str | None, quiet: bool, as_json: bool) -> None:
    """Write the indexes of all files of some paths, and print what was written.

    Args:
        paths: files, folders and globs.
        tool: the tool that is to read the indexes.
        folder: the folder for all indexes, made if it is not there; None to write each beside its file.
        quiet: True to print nothing.
        as_json: True to print a document.

    Raises:
        InvalidArgument: two indexes would have one path, or a path is an address.
        SeekableError: a file has no such index; nothing is written before all names are looked at.
    """
    import os

    from seekable.cli.output import write_document, write_line
    from seekable.errors import InvalidArgument
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
        if not as_json and not quiet:
            write_line(_in_words(path, [(each.index, each.records) for each in some], len(packed), tool))
    if as_json:
        skipped = [json_safe(file) for _, packed in found.values() for file in packed]
        write_document({"tool": tool, "indexes": written, "compressed": skipped})


def _in_words(path: str, written: list[tuple[str, int]], packed: int, tool: Tool) -> str:
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
    from seekable.errors import InvalidArgument

    for name, value in given.items():
        if value:
            message = f"{name} is for the index of seekable, and not for --lhotse and --energon: leave it out"
            raise InvalidArgument(message)
