"""``seekable bench``: a user's own files against the floor of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.options import (
    FormatOption,
    JsonOption,
    NoProgressOption,
    PathArgument,
    QuietOption,
    examples,
)

if TYPE_CHECKING:
    from seekable.cli.excerpt import Excerpt
    from seekable.cli.race import Result

EPILOG = examples(
    "bench corpus/",
    "bench --megabytes 2000 --seconds 10 'corpus/*.jsonl'",
    "bench --json corpus/ | jq '.results[] | {name, ratio}'",
)


_LITTLE_BYTES = 1_000_000


def bench(
    path: PathArgument,
    *,
    megabytes: Annotated[
        int, typer.Option("--megabytes", metavar="N", min=1, help="How much of the data to take.")
    ] = 256,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", min=0, help="How long each contest may take.")
    ] = 2.0,
    format_name: FormatOption = None,
    no_progress: NoProgressOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure your files beside the floor of this machine.

    Indexing, random reads and epochs are measured. The floor finds newlines, or slices a memory map and
    decodes, with no check and no index. Both run in turn, and the ratio is the median over the rounds. Files
    are drawn up to --megabytes and linked into a temporary folder; of one that is larger, the beginning is
    copied there. Your own index is neither read nor written. All times are with a warm page cache; how much
    of the data was in it before, and how fast it was read first, is told.
    """
    from seekable.cli.contests import Contests
    from seekable.cli.excerpt import excerpt_of
    from seekable.cli.output import write_document
    from seekable.cli.progress import StatusLine

    with (
        StatusLine(shown=not no_progress and not quiet) as status,
        excerpt_of(path, format_name=format_name, most_bytes=megabytes * 1_000_000) as excerpt,
    ):
        status.tell("reading the files once")
        first_read = _first_read(excerpt)
        contests = Contests(excerpt, seconds)
        results = list(contests.run(lambda name: status.tell(f"measuring: {name}")))
        decoded = contests.decoded
    document = _as_json(path, excerpt, first_read, results, decoded=decoded)
    if as_json:
        write_document(document)
    else:
        _tell(document)


def _first_read(excerpt: Excerpt) -> dict[str, Any]:
    import time

    from seekable.cli.floor import cached_share, read_all

    share = cached_share(excerpt.paths)
    began = time.perf_counter()
    size = read_all(excerpt.paths)
    return {"cached_share": share, "mb_per_s": size / 1e6 / max(time.perf_counter() - began, 1e-9)}


def _as_json(
    path: str, excerpt: Excerpt, first_read: dict[str, Any], results: list[Result], *, decoded: bool
) -> dict[str, Any]:
    from seekable.cli.output import json_safe

    return {
        "path": json_safe(path),
        "format": excerpt.format.name,
        "decoded": decoded,
        "files": len(excerpt.paths),
        "bytes": excerpt.bytes,
        "of_files": excerpt.all_files,
        "of_bytes": excerpt.all_bytes,
        "first_read": first_read,
        "results": [
            {
                "name": result.name,
                "us_per_record": 1e6 * result.seconds / result.records,
                "mb_per_s": result.bytes / 1e6 / result.seconds,
                "floor": result.floor_name,
                "floor_us_per_record": 1e6 * result.floor_seconds / result.records,
                "floor_mb_per_s": result.bytes / 1e6 / result.floor_seconds,
                "ratio": result.ratio,
                "records": result.records,
                "rounds": result.rounds,
            }
            for result in results
        ],
    }


def _tell(document: dict[str, Any]) -> None:
    from seekable.cli.output import in_words, write_facts, write_line, write_table
    from seekable.formats.csv import CSV_DELIMITERS
    from seekable.storage.memory import bytes_in_words

    taken, whole = (bytes_in_words(document[key]) for key in ("bytes", "of_bytes"))
    files = in_words(document["files"], "file")
    first = document["first_read"]
    share = (
        "" if first["cached_share"] is None else f", {100 * first['cached_share']:.0f} % of it was in memory"
    )
    facts = {
        "path": document["path"],
        "measured": f"{taken} in {files}, of {whole} in {document['of_files']:,}",
        "read first": f"{first['mb_per_s']:,.0f} MB/s{share}",
    }
    if document["format"] in CSV_DELIMITERS:
        facts["records"] = "left as bytes, because each file's own header tells how they are read"
    elif not document["decoded"]:
        facts["records"] = "left as bytes, because one cannot be decoded: seekable verify --decode names it"
    if document["bytes"] < _LITTLE_BYTES:
        facts["note"] = "so little data measures fixed costs alone: take some megabytes"
    write_facts(facts)
    write_line("")
    rows = [
        [
            row["name"],
            f"{row['mb_per_s']:,.0f}",
            f"{row['us_per_record']:,.2f}",
            f"{row['ratio']:.2f}",
            f"{row['floor_mb_per_s']:,.0f}",
            f"{row['floor_us_per_record']:,.2f}",
            row["floor"],
        ]
        for row in document["results"]
    ]
    write_table(["", "MB/s", "us/record", "x floor", "MB/s", "us/record", "the floor"], rows)
