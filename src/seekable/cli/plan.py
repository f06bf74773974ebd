"""``seekable plan``: which records are in a step, and which bytes of which files those are."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.options import IndexDirOption, JsonOption, QuietOption, examples

if TYPE_CHECKING:
    from seekable.loader.plan import FileReads, PlannedRecord, StepPlan

EPILOG = examples(
    "plan checkpoints/ --batch-size 32                     the step that comes next",
    "plan checkpoints/ --global-batch-size 256 --world-size 8 --rank 3 --step 12345",
    "plan train:make_loader --step 12345 --json | jq .files",
    "plan checkpoints/ --batch-size 32 --root /copy/of/the/data",
)


class End(StrEnum):
    """What becomes of the last batch of a run."""

    SHORT = "short"
    DROP = "drop"
    PAD = "pad"


def _count(option: str, help_text: str, *, least: int = 1) -> Any:
    return typer.Option(option, metavar="N", min=least, help=help_text, show_default=False)


def plan(  # noqa: PLR0913 - an argument for each of its options
    target: Annotated[
        str,
        typer.Argument(
            metavar="STATE|MODULE:FUNCTION",
            help="A saved state, a folder of them, or a function that returns a Dataset or a Loader.",
            show_default=False,
        ),
    ],
    *,
    step: Annotated[int | None, _count("--step", "Which one, from 0; else the next.", least=0)] = None,
    rank: Annotated[int | None, _count("--rank", "The records of this rank; else of all.", least=0)] = None,
    world_size: Annotated[int | None, _count("--world-size", "How many ranks there are; else 1.")] = None,
    batch_size: Annotated[int | None, _count("--batch-size", "Records in a batch of one rank.")] = None,
    global_batch_size: Annotated[
        int | None, _count("--global-batch-size", "Records in a batch over all ranks.")
    ] = None,
    epochs: Annotated[int | None, _count("--epochs", "Epochs of a run; else 1.")] = None,
    steps: Annotated[int | None, _count("--steps", "The most batches of a run.")] = None,
    end: Annotated[
        End | None, typer.Option("--end", help="The last batch of a run; else short.", show_default=False)
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="PATH", help="A state to load into the function's loader.", show_default=False
        ),
    ] = None,
    root: Annotated[
        list[str] | None,
        typer.Option(
            "--root",
            metavar="FOLDER",
            help="Where the files of a saved pipeline are now; may be given several times.",
            show_default=False,
        ),
    ] = None,
    index_dir: IndexDirOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Tell which records, files and bytes a step delivers.

    No record is read. From a saved state the order is rebuilt out of the description that sk.save_state wrote
    beside it; how records make batches is no part of a state, so say it as you say it to your Loader.
    MODULE:FUNCTION is imported, with the working folder on Python's path, and called.
    """
    from seekable.cli.output import write_document
    from seekable.cli.pipelines import Batches, pipeline_of

    given = {
        "batch_size": batch_size,
        "global_batch_size": global_batch_size,
        "world_size": world_size,
        "epochs": epochs,
        "steps": steps,
        "end": None if end is None else end.value,
    }
    pipeline = pipeline_of(target, Batches(given), state=state, roots=root or [], index_dir=index_dir)
    planned = pipeline.loader.plan(step=pipeline.loader.step if step is None else step)
    shown = planned if rank is None else planned.of_rank(rank)
    if as_json:
        write_document({**_as_json(shown), "rank": rank, "notes": list(pipeline.notes)})
        return
    if not quiet:
        for note in pipeline.notes:
            typer.echo(f"seekable: {note}", err=True)
    _tell(shown, rank=rank)


def _as_json(planned: StepPlan) -> dict[str, Any]:
    from seekable.loader.plan import reads_of

    return {
        "step": planned.step,
        "batch": planned.batch,
        "world_size": planned.world_size,
        "records": [_record(record) for record in planned.records],
        "files": [_reads(reads) for reads in reads_of(planned.records)],
    }


def _record(record: PlannedRecord) -> dict[str, Any]:
    return {
        "position": record.position,
        "epoch": record.epoch,
        "rank": record.rank,
        "location": _place(record.place),
    }


def _place(place: Any) -> Any:
    from seekable.cli.output import json_safe
    from seekable.index.location import Location

    if isinstance(place, list | tuple):
        return [_place(part) for part in place]
    has_bytes = isinstance(place, Location) and not place.path.startswith("<")
    return {
        "path": json_safe(place.path),
        "row": place.row,
        "offset": place.offset if has_bytes else None,
        "length": place.length if has_bytes else None,
    }


def _reads(reads: FileReads) -> dict[str, Any]:
    from seekable.cli.output import json_safe

    return {
        "path": json_safe(reads.path),
        "records": reads.records,
        "bytes": reads.bytes,
        "start": reads.start,
        "stop": reads.stop,
    }


def _tell(planned: StepPlan, *, rank: int | None) -> None:
    from seekable.cli.output import in_words, write_line, write_table
    from seekable.loader.plan import places_of, reads_of

    whose = (
        f"rank {rank} of {planned.world_size}"
        if rank is not None
        else f"{in_words(planned.world_size, 'rank')}"
    )
    write_line(f"step {planned.step:,}, {whose}: {in_words(len(planned.records), 'record')}")
    if not planned.records:
        return
    rows = []
    for record in planned.records:
        for place in places_of(record.place):
            found = _place(place)
            at = [_number(found[key]) for key in ("row", "offset", "length")]
            numbers = [_number(number) for number in (record.position, record.epoch, record.rank)]
            rows.append([*numbers, *at, place.path])
    write_line("")
    write_table(["position", "epoch", "rank", "record", "offset", "length", "file"], rows)
    write_line("")
    files = [
        [_number(reads.records), _number(reads.bytes), _number(reads.start), _number(reads.stop), reads.path]
        for reads in reads_of(planned.records)
    ]
    write_table(["records", "bytes", "from", "to", "file"], files)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
