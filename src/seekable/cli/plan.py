"""``seekable plan``: the records of a step, and the bytes of files that they are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from seekable.cli.shared_options import IndexOption, RunOptions, Shown, argument, examples, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.loader.step_plan import StepPlan

EPILOG = examples(
    "plan checkpoints/                                     the step that comes next",
    "plan checkpoints/ --global-batch-size 256 --world-size 8 --rank 3 --step 12345",
    "plan train:make_loader --step 12345 --json | jq .files",
    "plan checkpoints/ --batch-size 32 --root /copy/of/the/data",
)


def plan(
    target: Annotated[
        str,
        argument(
            "STATE|PIPELINE|MODULE:FUNCTION",
            "A saved state, a folder of them, a pipeline file, or a function that returns a Dataset or a "
            "Loader.",
        ),
    ],
    *,
    step: Annotated[int | None, option("--step", "N", "Which one, from 0; else the next.", least=0)] = None,
    rank: Annotated[
        int | None, option("--rank", "N", "The records of this rank; else of all.", least=0)
    ] = None,
    run: RunOptions,
    index: IndexOption = None,
    shown: Shown,
) -> None:
    """Show the records, files and bytes of a step.

    No record is read. From a saved state the order is rebuilt out of the description that sk.save_state wrote
    beside it. How many records make a batch follows from two states of one run, and the ranks from the names
    of their files: say both where a folder has not so many, or where they changed.
    MODULE:FUNCTION is imported, with the working folder on Python's path, and called.
    """
    from seekable.cli.data_argument import index_folder
    from seekable.cli.output import write_document, write_line
    from seekable.loader.steerable import made_by
    from seekable.viewer.facts.data_survey import requests_of
    from seekable.viewer.facts.pipelines import Batches, pipeline_of, step_document

    place = {**run.place, "index_dir": index_folder(index), "step": step}
    pipeline = pipeline_of(target, Batches(run.of_loader), **place)
    planned = pipeline.loader.plan(step=pipeline.loader.step if step is None else step, rank=rank)
    dataset = made_by(pipeline.loader, planned.step)
    requests = requests_of(dataset, [record.position for record in planned.records])
    if shown.as_json:
        stores = {} if requests is None else {"requests": requests}
        write_document({**step_document(planned), **stores, "rank": rank, "notes": list(pipeline.notes)})
    else:
        _print(planned, pipeline.notes, rank=rank, quiet=shown.quiet)
        if requests is not None and planned.records:
            write_line(f"\n{_requests_in_words(requests)}")


def _requests_in_words(requests: dict[str, int]) -> str:
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.json_documents import in_words

    count, sizes = in_words(requests["count"], "request"), bytes_in_words(requests["bytes"])
    return f"{count} to stores, {sizes}, where nothing of it is in the cache"


def _print(planned: StepPlan, notes: Sequence[str], *, rank: int | None, quiet: bool) -> None:
    if not quiet:
        from seekable.cli.output import tell

        for note in notes:
            tell(note)
    _print_tables(planned, rank=rank)


def _print_tables(planned: StepPlan, *, rank: int | None) -> None:
    from seekable.cli.output import write_line, write_table
    from seekable.loader.step_plan import places_of, reads_of
    from seekable.viewer.facts.json_documents import in_words

    ranks = (
        f"rank {rank} of {planned.world_size}"
        if rank is not None
        else f"{in_words(planned.world_size, 'rank')}"
    )
    write_line(f"step {planned.step:,}, {ranks}: {in_words(len(planned.records), 'record')}")
    if not planned.records:
        return
    write_line("")
    _print_records(planned)
    if any(getattr(place, "is_shared", False) for each in planned.records for place in places_of(each.place)):
        write_line("\nBytes of rows of tables are those of their whole groups.")
    write_line("")
    files = [
        [_number(reads.records), _number(reads.bytes), _number(reads.start), _number(reads.stop), reads.path]
        for reads in reads_of(planned.records)
    ]
    write_table(["records", "bytes", "from", "to", "file"], files)


def _print_records(planned: StepPlan) -> None:
    """Print a line for each place; of a token store's documents also the line that each was made of."""
    from seekable.cli.output import write_table
    from seekable.loader.step_plan import places_of
    from seekable.viewer.facts.json_documents import place_as_json

    header = ["position", "epoch", "rank", "record", "offset", "length", "file"]
    found = [
        (record, place_as_json(place)) for record in planned.records for place in places_of(record.place)
    ]
    has_sources = any("source" in place for _, place in found)
    rows = []
    for record, place in found:
        numbers = [_number(number) for number in (record.position, record.epoch, record.rank)]
        row = [*numbers, *(_number(place[key]) for key in ("row", "offset", "length")), place["path"]]
        rows.append(row + _source(place.get("source")) * has_sources)
    write_table([*header, *["of record", "at byte", "of file"] * has_sources], rows)


def _source(source: dict[str, Any] | None) -> list[str]:
    """Return the record, the byte and the file that a document was made of, as far as they are known."""
    if source is None:
        return ["-", "-", "-"]
    return [_number(source["row"]), _number(source["offset"] if source["length"] else None), source["path"]]


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
