"""``seekable bench``: how fast data is read, where the time goes, and what to change."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal

from seekable.cli.shared_options import DataOptions, PathArgument, Shown, examples, option
from seekable.errors import SeekableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.cli.data_argument import DataArgument
    from seekable.dataset.dataset import Dataset
    from seekable.viewer.facts.read_speed import ReadSpeed

EPILOG = examples(
    "bench corpus/",
    "bench 'shards/*.tar' --workers 8 --seconds 60",
    "bench --json corpus.parquet | jq '.ways[] | [.order, .records_per_second]'",
)

_OTHERS: tuple[Literal["bytes", "arrow"], ...] = ("bytes", "arrow")
_MILLION = 1e6
_MOST_WORKERS = 4
"""More are not started unasked: each takes memory, and time to start."""
_BAR = 20


def bench(
    path: PathArgument,
    *,
    seconds: Annotated[
        float,
        option("--seconds", "S", "About how long to measure, the index being there; else 20.", least=0.1),
    ] = 20.0,
    batch_size: Annotated[
        int,
        option("--batch-size", "N", "Records in a batch, fewer where these take long; else 256.", least=1),
    ] = 256,
    window: Annotated[int, option("--window", "N", "Blocks of the windowed shuffle; else 16.", least=1)] = 16,
    workers: Annotated[
        int | None,
        option(
            "--workers",
            "N",
            "Worker processes to compare with none; one for each processor, 4 at most, if left out.",
            least=0,
        ),
    ] = None,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Measure how fast data is read.

    It reads as a Loader does: in order, shuffled in windows and shuffled as a whole; as records, as bytes and
    as record batches where the format has them; with and without worker processes. It shows the records a
    second, where the time of a record goes, and what to change. A pipeline file is read in its own order.
    Nothing is written but the index; of a store, what is read is fetched and kept in the cache.
    """
    from seekable.cli.data_argument import DataArgument
    from seekable.cli.output import StatusLine, write_document
    from seekable.dataset.pipeline.pipeline_file import is_pipeline_file
    from seekable.parallel.processes import usable_cpus
    from seekable.viewer.facts.json_documents import in_words
    from seekable.viewer.facts.read_speed import advice, measured, time_parts, ways_of

    argument, ordered = DataArgument(path, data, shown), is_pipeline_file(path)
    dataset = argument.dataset()
    ways = ways_of(
        dataset,
        {} if ordered else _decoded_otherwise(argument),
        window=window,
        workers=min(usable_cpus(), _MOST_WORKERS) if workers is None else workers,
        ordered=ordered,
    )
    with StatusLine(shown=not shown.quiet) as line:
        speeds = measured(
            ways,
            seconds=seconds,
            batch_size=batch_size,
            tell=lambda done, way: line.show(
                f"{_bar(done)} {way.order}, {way.decode}, {in_words(way.workers, 'worker')}"
            ),
        )
    parts = time_parts(speeds)
    document = _document(dataset, speeds) | {"seconds_by_part": parts, "advice": advice(speeds, parts)}
    if shown.as_json:
        write_document(document)
    else:
        _print(document)


def _decoded_otherwise(argument: DataArgument) -> dict[str, Dataset]:
    """Return the data with other decodings, those that its format has."""
    found: dict[str, Dataset] = {}
    for decode in _OTHERS:
        with suppress(SeekableError):
            found[decode] = argument.opened(decode)
    return found


def _document(dataset: Dataset, speeds: Sequence[ReadSpeed]) -> dict[str, Any]:
    from seekable.nodes.node import node_of
    from seekable.viewer.facts.data_survey import data_facts

    facts = data_facts(node_of(dataset))
    sizes = [facts["bytes"] / facts["records"]] if facts.get("bytes") else []
    return {
        "records": facts["records"],
        "bytes": facts.get("bytes"),
        "ways": [_way(speed, sizes[0] if sizes else None) for speed in speeds],
    }


def _way(speed: ReadSpeed, size: float | None) -> dict[str, Any]:
    way = speed.way
    return {
        "order": way.order,
        "decode": way.decode,
        "workers": way.workers,
        "records_per_second": speed.rate,
        "bytes_per_second": None if size is None else speed.rate * size,
        "processor_seconds": None if way.workers else speed.record_processor_seconds,
        "waiting": None if way.workers else speed.waiting,
        "disk_bytes": None if way.workers else speed.disk_bytes,
        "measured": speed.records,
    }


def _print(document: dict[str, Any]) -> None:
    from seekable.cli.output import write_line, write_table

    records = document["records"]
    write_table(
        ["order", "as", "workers", "records/s", "MB/s", "us of processor", "waiting %", "an epoch"],
        [_row(way, records) for way in document["ways"]],
    )
    parts = document["seconds_by_part"]
    told = ", ".join(f"{name} {seconds * _MILLION:,.2f}" for name, seconds in parts.items())
    write_line(f"\na record without workers, in us: {told}")
    for line in document["advice"]:
        write_line(f"advice: {line}")


def _row(way: dict[str, Any], records: int) -> list[str]:
    rate, size = way["records_per_second"], way["bytes_per_second"]
    return [
        way["order"],
        way["decode"],
        f"{way['workers']}",
        f"{rate:,.0f}",
        "-" if size is None else f"{size / _MILLION:,.1f}",
        "-" if way["workers"] else f"{way['processor_seconds'] * _MILLION:,.2f}",
        "-" if way["workers"] else f"{100 * way['waiting']:.0f}",
        _duration(records / rate),
    ]


def _duration(seconds: float) -> str:
    """Return a time in words.

    Example:
        >>> _duration(0.25), _duration(75.0), _duration(7300.0)
        ('0.25 s', '1 min 15 s', '2 h 1 min')
    """
    minutes, hours = seconds / 60, seconds / 3600
    if minutes < 1:
        return f"{seconds:.3g} s"
    if hours < 1:
        return f"{int(minutes)} min {int(seconds) % 60} s"
    return f"{int(hours):,} h {int(minutes) % 60} min"


def _bar(share: float) -> str:
    """Return a bar.

    Example:
        >>> _bar(0.5)
        '[##########..........]'
    """
    filled = int(_BAR * share)
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"
