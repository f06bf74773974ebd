"""``seekable index``: find out where records lie, before they are asked for."""

from __future__ import annotations

from typing import Annotated

import typer

from seekable.cli.options import (
    FormatOption,
    IndexDirOption,
    JobsOption,
    JsonOption,
    NoProgressOption,
    QuietOption,
    examples,
)

EPILOG = examples(
    "index corpus.jsonl",
    "index 'web/*.jsonl' code/           two datasets",
    "index --jobs 8 --index-dir /fast/indexes 'corpus/*.jsonl'",
    "index --key id corpus/              also which record has which id",
)


def index(  # noqa: PLR0913 - an argument an option
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Datasets: files, folders or quoted globs.", show_default=False),
    ],
    *,
    format_name: FormatOption = None,
    index_dir: IndexDirOption = None,
    jobs: JobsOption = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="FIELD",
            help="Keep the keys of records too, for sk.open(key=FIELD).",
            show_default=False,
        ),
    ] = None,
    pages: Annotated[
        bool,
        typer.Option("--pages", help="Find the pages of Parquet files too, which the first read else does."),
    ] = False,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Index datasets: only what is new or was changed.

    Every command does so by itself when it must; this one does it ahead. It can be interrupted at any
    time: what was indexed is kept, and the next run goes on from there.
    """
    import time

    from seekable.cli.opening import Opening
    from seekable.cli.output import in_words, json_safe, write_document, write_line
    from seekable.cli.place import index_folder
    from seekable.nodes.sources.tables import TableSource
    from seekable.storage.memory import bytes_in_words

    documents = []
    for path in paths:
        opening = Opening(
            path,
            format=format_name,
            index_dir=index_dir,
            jobs=jobs,
            key=key,
            progress=not no_progress,
            quiet=quiet,
        )
        begun = time.perf_counter()
        dataset = opening.open()
        if pages and isinstance(dataset, TableSource):
            dataset.walk(progress=opening.watch)
            opening.watch.close()
        seconds = time.perf_counter() - begun
        size, folder = int(dataset.files.sizes.sum()), index_folder(dataset)
        documents.append(
            {
                "path": json_safe(path),
                "files": len(dataset.files),
                "files_indexed": opening.watch.files_indexed,
                "records": dataset.size,
                "bytes": size,
                "seconds": seconds,
                "index_folder": json_safe(folder),
                **({} if dataset.keys is None else {"key": key, "keys": dataset.keys.index.count}),
            }
        )
        if not as_json and not quiet:
            counts = f"{in_words(dataset.size, 'record')} in {in_words(len(dataset.files), 'file')}"
            indexed = f"{opening.watch.files_indexed:,} indexed in {seconds:.2f} s"
            write_line(f"{path}: {counts}, {bytes_in_words(size)}; {indexed}; index in {folder}")
    if as_json:
        write_document({"datasets": documents})
