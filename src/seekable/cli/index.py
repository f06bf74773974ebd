"""``seekable index``: index data before it is read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.options import (
    AllowOption,
    BosIdOption,
    EosIdOption,
    ExecutorOption,
    FormatOption,
    IndexDirOption,
    JobsOption,
    JsonOption,
    NoProgressOption,
    QuietOption,
    TokenTypeOption,
    examples,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.cli.data_argument import Opening

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


KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="FIELD",
        help="Keep the keys of records too, for sk.open(key=FIELD).",
        show_default=False,
    ),
]
PagesOption = Annotated[
    bool,
    typer.Option("--pages", help="Find the pages of Parquet files too, which the first read else does."),
]
PublishOption = Annotated[
    bool,
    typer.Option(
        "--publish", help="Write the index of data in a store beside it, where other machines find it."
    ),
]
MostBytesOption = Annotated[
    int | None,
    typer.Option(
        "--most-bytes",
        metavar="BYTES",
        min=0,
        help="Refuse, before the first one, to transfer more bytes than this from a store.",
        show_default=False,
    ),
]
LhotseOption = Annotated[
    bool,
    typer.Option(
        "--lhotse", help="Write Lhotse's .idx of plain JSON lines and of tar files of pairs (Shar)."
    ),
]
EnergonOption = Annotated[
    bool, typer.Option("--energon", help="Write Energon's .tar.idx of tar files, by WebDataset's samples.")
]
OutputDirOption = Annotated[
    str | None,
    typer.Option(
        "--output-dir",
        "-o",
        metavar="FOLDER",
        help="Write .idx files here instead of beside the data.",
        show_default=False,
    ),
]


def index(  # noqa: PLR0913 - an argument for each option
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Datasets: files, folders or quoted globs.", show_default=False),
    ],
    *,
    format_name: FormatOption = None,
    dtype: TokenTypeOption = None,
    eos: EosIdOption = None,
    bos: BosIdOption = None,
    index_dir: IndexDirOption = None,
    allow: AllowOption = None,
    jobs: JobsOption = None,
    executor: ExecutorOption = None,
    key: KeyOption = None,
    pages: PagesOption = False,
    publish: PublishOption = False,
    most_bytes: MostBytesOption = None,
    lhotse: LhotseOption = False,
    energon: EnergonOption = False,
    output_dir: OutputDirOption = None,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Index datasets: only what is new or was changed.

    Every command does so by itself when it must; this one does it ahead. It can be interrupted at any
    time: what was indexed is kept, and the next run goes on from there.

    With --lhotse or --energon, indexes for these tools are written instead, whole or not at all; seekable
    needs none of them. Compressed files have no such index: those of a folder are left out, and one that is
    named is an error.
    """
    if lhotse or energon or output_dir is not None:
        _write_for_others(
            paths,
            {"--lhotse": lhotse, "--energon": energon},
            {
                "--format": format_name,
                "--index-dir": index_dir,
                "--allow": allow,
                "--jobs": jobs,
                "--executor": executor,
                "--key": key,
                "--pages": pages,
                "--publish": publish,
                "--most-bytes": most_bytes,
            },
            output_dir=output_dir,
            quiet=quiet,
            as_json=as_json,
        )
        return
    from seekable.cli.data_argument import Opening
    from seekable.cli.executors import executor_of

    with executor_of(executor, jobs=jobs) as cluster:
        opening = partial(
            Opening,
            format=format_name,
            index_dir=index_dir,
            allow=allow,
            jobs=jobs,
            executor=cluster,
            key=key,
            progress=not no_progress,
            quiet=quiet,
            dtype=dtype,
            eos=eos,
            bos=bos,
            most_bytes=most_bytes,
            publish=publish,
        )
        openings = ((path, opening(path)) for path in paths)
        index_all(openings, pages=pages, quiet=quiet, as_json=as_json)


def index_all(
    openings: Iterable[tuple[str, Opening]], *, pages: bool = False, quiet: bool, as_json: bool
) -> None:
    """Index datasets, and print what was done: a line for each, or one document.

    Args:
        openings: the datasets, each with its name on the command line.
        pages: True to find the pages of Parquet files too.
        quiet: True to print no lines.
        as_json: True to print the document.
    """
    from seekable.cli.output import write_document, write_line

    documents = []
    for path, opening in openings:
        documents.append(indexed(opening, pages=pages))
        if not as_json and not quiet:
            write_line(indexed_in_words(path, documents[-1]))
    if as_json:
        write_document({"datasets": documents})


def _write_for_others(
    paths: list[str],
    tools: dict[str, bool],
    given: dict[str, object],
    *,
    output_dir: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write the indexes of another tool.

    Raises:
        InvalidArgument: no tool is named, or two are, or an option is of the index of seekable.
    """
    from seekable.cli.other_indexes import refuse_options, write_for_tool
    from seekable.errors import InvalidArgument

    if sum(tools.values()) != 1:
        message = (
            "name one of --lhotse and --energon: both write FILE.idx, with another last number"
            if all(tools.values())
            else "--output-dir is for --lhotse and --energon; the index of seekable goes to --index-dir"
        )
        raise InvalidArgument(message)
    refuse_options(given)
    write_for_tool(
        paths, "lhotse" if tools["--lhotse"] else "energon", folder=output_dir, quiet=quiet, as_json=as_json
    )


def indexed(opening: Opening, *, pages: bool = False) -> dict[str, Any]:
    """Index one dataset, and return the document about it.

    Args:
        opening: the dataset.
        pages: True to find the pages of Parquet files too.
    """
    import time

    from seekable.formats.tables.tables import TableSource
    from seekable.index.location import shown_path
    from seekable.storage.file_names import INDEX_FOLDER
    from seekable.viewer.facts.data_survey import files_of
    from seekable.viewer.facts.documents import json_safe

    begun = time.perf_counter()
    sources = opening.sources()
    for source in sources:
        if pages and isinstance(source, TableSource):
            source.walk(progress=opening.watch)
            opening.watch.close()
    files = files_of(sources)
    folders = dict.fromkeys(folder for each in files for folder in each.folders)
    roots = dict.fromkeys(root for each in files for root, _, _ in each.runs)
    keys = sources[0].keys if opening.key is not None else None
    return {
        "path": json_safe(opening.path),
        "files": sum(map(len, files)),
        "files_indexed": opening.watch.files_indexed,
        "records": sum(source.size for source in sources),
        "bytes": sum(int(each.data_sizes.sum()) for each in files),
        "seconds": time.perf_counter() - begun,
        "index_folder": ", ".join(map(json_safe, folders)),
        **(
            {"published": [f"{shown_path(root)}/{INDEX_FOLDER}" for root in roots]} if opening.publish else {}
        ),
        **({} if keys is None else {"key": opening.key, "keys": keys.index.count}),
    }


def indexed_in_words(path: str, document: dict[str, Any]) -> str:
    """Return the line about one dataset that is printed for people."""
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.documents import in_words

    counts = f"{in_words(document['records'], 'record')} in {in_words(document['files'], 'file')}"
    built = f"{document['files_indexed']:,} indexed in {document['seconds']:.2f} s"
    size = bytes_in_words(document["bytes"])
    published = "".join(f", published in {address}" for address in document.get("published", ()))
    return f"{path}: {counts}, {size}; {built}; index in {document['index_folder']}{published}"
