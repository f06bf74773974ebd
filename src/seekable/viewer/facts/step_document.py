"""The records of a step, and the bytes of files that they are read from, as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.loader.step_plan import reads_of
from seekable.viewer.facts.documents import json_safe, place_as_json

if TYPE_CHECKING:
    from seekable.loader.step_plan import FileReads, PlannedRecord, StepPlan

__all__ = ["step_document"]


def step_document(planned: StepPlan) -> dict[str, Any]:
    """Return the records of a step, and the bytes of each file that they are read from, JSON-safe."""
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
        "location": place_as_json(record.place),
    }


def _reads(reads: FileReads) -> dict[str, Any]:
    return {
        "path": json_safe(reads.path),
        "records": reads.records,
        "bytes": reads.bytes,
        "start": reads.start,
        "stop": reads.stop,
    }
