"""A pipeline: what it is, how it differs from another, from which position on, and the states of its runs."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, KeyNotFound
from seekable.loader.checkpoint_files import generations_in, read_saved, state_name
from seekable.loader.loader import Loader
from seekable.loader.positioned import sizes_of
from seekable.loader.steerable import made_by
from seekable.loader.step_plan import own_bytes, places_of
from seekable.nodes.display import explained
from seekable.nodes.node import node_of
from seekable.resume.from_description import described_sources
from seekable.state.descriptions import difference, outline
from seekable.viewer.facts.json_documents import json_safe
from seekable.viewer.facts.named_sources import source_names, source_nodes, sources_of
from seekable.viewer.facts.reading import COMPUTED
from seekable.viewer.facts.saved_state import (
    by_source,
    consumed_between,
    generation_document,
    journal_differences,
    journal_facts,
    pipeline_differences,
    place_differences,
    saved_journal,
    state_document,
)
from seekable.viewer.page import Page, Redirect

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.loader.checkpoint_files import Generation, Saved
    from seekable.loader.step_plan import StepPlan
    from seekable.nodes.node import Node
    from seekable.viewer.opened import Opened, OpenPipeline
    from seekable.viewer.page import Asked


_MOST_MISSING = 10


def pipeline(opened: Opened, asked: Asked) -> Page:
    """Return what a pipeline is: the records of an epoch, batches, ranks, lanes and sources."""
    found = opened.pipeline(asked.name)
    if found.is_stream:
        return _stream(asked.name, found)
    each = found.loader
    node = node_of(each.dataset)
    sources = zip(source_names(node), source_nodes(node), strict=True)
    document = {
        "name": asked.name,
        "kind": "pipeline",
        "pipeline": json_safe(node.expression()),
        "records": node.size,
        "steady": node.steady,
        "lanes": node.lanes,
        "fingerprint": node.fingerprint,
        "batch": sizes_of(each) if found.has_batch else None,
        "world_size": each.world_size,
        "step": each.step,
        "epoch": each.epoch,
        "sources": [{"name": name, "records": source.size} for name, source in sources],
        "nodes": [json_safe(line) for line in explained(node)],
        "notes": list(found.notes),
        **({"journal": _journal_of(each)} if each.journal else {}),
    }
    return Page("pipeline", asked.name, document, {"has_log": asked.name in opened.logs})


def _journal_of(loader: Loader) -> list[dict[str, Any]]:
    return journal_facts(loader.journal, source_names(node_of(loader.dataset)))


def _stream(name: str, found: OpenPipeline) -> Page:
    loader = found.pipeline if isinstance(found.pipeline, Loader) else None
    stream: Any = found.root
    document = {
        "name": name,
        "kind": "stream",
        "lanes": stream.lanes,
        "endless": stream.endless,
        "fingerprint": stream.fingerprint,
        "batch": None if loader is None else sizes_of(loader),
        "world_size": None if loader is None else loader.world_size,
        "step": None if loader is None else loader.step,
        "nodes": json_safe(stream.explain()).splitlines(),
        **({"journal": journal_facts(loader.journal)} if loader is not None and loader.journal else {}),
    }
    return Page("stream", name, document)


def compare(opened: Opened, asked: Asked) -> Page:
    """Return the differences of two open pipelines; steps of streams are not known without their records.

    Raises:
        InvalidArgument: fewer than two pipelines are open.
    """
    names = tuple(name for name, each in opened.pipelines.items() if not each.is_stream)
    if len(names) < 2:  # noqa: PLR2004 - two are compared
        message = "two pipelines are compared, and fewer are open: start the viewer with both, as NAME=PATH"
        raise InvalidArgument(message)
    a = asked.choice("a", names)
    b = asked.choice("b", tuple(name for name in names if name != a))
    old, new = opened.pipeline(a).loader, opened.pipeline(b).loader
    step = asked.count("step", default=0)
    found = compare_pipelines(old, new, step=step)
    document = {"a": a, "b": b, **found.document()}
    sources = dict.fromkeys(name for side in (found.old, found.new) for name, _ in side.sources)
    return Page("compare", f"{a} and {b}", document, {"names": names, "sources": list(sources)})


def states(opened: Opened, asked: Asked) -> Page:
    """Return the generations of a folder, the newest first."""
    folder = opened.folder(asked.name)
    found = [
        {**generation_document(generation), "missing": _missing(generation)}
        for generation in reversed(generations_in(folder))
    ]
    why = opened.unopened.get(asked.name)
    document = {
        "name": asked.name,
        "path": json_safe(folder),
        "generations": found,
        "pipeline_unknown": None if why is None else json_safe(why),
    }
    journal = saved_journal(_saved(opened, asked.name, found[0]["step"])) if found else []
    return Page("states", asked.name, document, {"journal": journal})


def _missing(generation: Generation) -> list[int]:
    """Return the first ranks without a file, at most ten."""
    step, ranks = generation.step, generation.ranks
    lacking = (
        rank for rank in range(ranks) if state_name(step, rank=rank, ranks=ranks) not in generation.names
    )
    return list(islice(lacking, _MOST_MISSING))


def state(opened: Opened, asked: Asked) -> Page:
    """Return one state: where the run was, and how far each source."""
    folder, number = opened.folder(asked.name), int(asked.path["step"])
    saved = _saved(opened, asked.name, number)
    document = state_document(folder, saved, generations_in(folder))
    tree = [json_safe(line) for line in outline(saved.description)] if saved.description is not None else []
    title = f"{asked.name}, step {number:,}"
    return Page("state", title, {"name": asked.name, **document}, {"tree": tree, "at": number})


def compared(opened: Opened, asked: Asked) -> Page:
    """Return how two states differ, as ``seekable state diff`` prints it, and what came between them."""
    old, new = int(asked.path["old"]), int(asked.path["new"])
    was, now = _saved(opened, asked.name, old), _saved(opened, asked.name, new)
    pipeline, place = pipeline_differences(was, now), place_differences(was, now)
    document = {
        "name": asked.name,
        "old": old,
        "new": new,
        "same": not pipeline and not place,
        "same_pipeline": not pipeline,
        "differences": [*pipeline, *place],
        "sources": None if now.description is None else len(described_sources(now.description)),
        "delivered": consumed_between(was, now),
        "by_source": by_source(was, now),
        "changed": _changed_between(was, now),
    }
    return Page("compared", f"{asked.name}, steps {old:,} and {new:,}", document)


def _changed_between(was: Saved, now: Saved) -> list[dict[str, Any]]:
    """Return what the journal of one state has, and that of another lacks."""
    known = saved_journal(was)
    return [each for each in saved_journal(now) if each not in known]


def chosen_states(opened: Opened, asked: Asked) -> Redirect:
    """Return the address of two states that a form names, the older one first."""
    opened.folder(asked.name)
    steps = sorted((asked.count("old", default=0), asked.count("new", default=0)))
    return Redirect(f"s/{asked.name}/{steps[0]}...{steps[1]}")


def _saved(opened: Opened, name: str, step: int) -> Saved:
    folder = opened.folder(name)
    found = [generation for generation in generations_in(folder) if generation.step == step]
    if not found:
        message = f"{name} has no state of step {step:,}"
        raise KeyNotFound(message)
    best = max(found, key=lambda generation: generation.complete)
    return read_saved(os.path.join(folder, best.names[0]))


LOOKED_AT = 100_000
"""The first positions that are compared: some 100 ms."""

_FIRST_PIECE = 256


@dataclass(frozen=True, slots=True)
class StepSide:
    """The records that one pipeline delivers at the step."""

    batch: int
    records: int
    bytes: int | None
    """The bytes of its records in their files; None where lengths are not known, such as in tables."""
    sources: tuple[tuple[str, int], ...]
    """The name of each source, and its records in the step."""

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""
        sources = [{"name": json_safe(name), "records": records} for name, records in self.sources]
        return {"batch": self.batch, "records": self.records, "bytes": self.bytes, "sources": sources}


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two pipelines differ, and what they share in one step."""

    differences: tuple[str, ...]
    """A line for each difference of the descriptions."""
    same: bool
    """True if the fingerprints are equal, so that every position has the same record."""
    first_different: int | None
    """The first position with another record; None if there is none among ``looked_at``."""
    looked_at: int
    """The number of positions that were compared from 0 on."""
    step: int
    in_both: int
    """The records of the step that both deliver in it."""
    old: StepSide
    new: StepSide

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""
        return {
            "differences": list(map(json_safe, self.differences)),
            "same": self.same,
            "first_different": self.first_different,
            "looked_at": self.looked_at,
            "step": self.step,
            "in_both": self.in_both,
            "only_old": self.old.records - self.in_both,
            "only_new": self.new.records - self.in_both,
            "old": self.old.document(),
            "new": self.new.document(),
            "made_of": COMPUTED,
        }


def compare_pipelines(old: Loader, new: Loader, *, step: int) -> Comparison:
    """Return the differences of two pipelines; no record is read.

    Records are the same if they are the same rows of the same files.

    Args:
        old: the loader of one.
        new: the loader of the other.
        step: the step whose records are compared.

    Raises:
        InvalidArgument: ``step`` is negative.

    Example:
        >>> import seekable as sk
        >>> rows = sk.from_sequence(range(100), version="rows")
        >>> a, b = (sk.Loader(rows.shuffle(seed=seed), batch_size=10, prefetch=0) for seed in (1, 1))
        >>> compare_pipelines(a, b, step=3).in_both
        10
    """
    checked_count("step", step, least=0)
    before, after = node_of(old.dataset), node_of(new.dataset)
    same = before.fingerprint == after.fingerprint
    lines = [] if same else difference(before.describe(None), after.describe(None), most=None).splitlines()
    lines += journal_differences(*map(_journal_of, (old, new)))
    same = not lines
    first, looked_at = (None, 0) if same else first_difference(made_by(old), made_by(new))
    planned = old.plan(step=step), new.plan(step=step)
    identities = [Counter(_identity(record.place) for record in each.records) for each in planned]
    return Comparison(
        differences=tuple(lines),
        same=same,
        first_different=first,
        looked_at=looked_at,
        step=step,
        in_both=(identities[0] & identities[1]).total(),
        old=_side(old, planned[0]),
        new=_side(new, planned[1]),
    )


def first_difference(old: Node, new: Node, *, most: int = LOOKED_AT) -> tuple[int | None, int]:
    """Return the first position with another record, and how many positions were compared.

    Where one pipeline ends its epoch, the next one begins; an empty one has no position to compare.

    Args:
        old: one pipeline.
        new: the other.
        most: the number of positions after which the comparison ends.

    Example:
        >>> import seekable as sk
        >>> a = sk.from_sequence("abcdef", version="letters")
        >>> first_difference(a._node, sk.concat([a.take(4), a.skip(5)])._node)
        (4, 256)
    """
    if 0 in (old.size, new.size):
        return None, 0
    start, count = 0, _FIRST_PIECE
    while start < most:
        positions = np.arange(start, min(start + count, most), dtype=np.int64)
        different = _different(old, new, positions)
        start += positions.size
        if different.size:
            return int(positions[different[0]]), start
        count *= 4
    return None, start


def _different(old: Node, new: Node, positions: Int64s) -> NDArray[np.intp]:
    """Return the indices of the positions at which the places of the records differ."""
    plans = old.plan(positions), new.plan(positions)
    try:
        origins = [plan.origins() for plan in plans]
    except InvalidArgument:
        # Lists of records have no one file: their places are compared one by one.
        pairs = zip(*(map(_identity, plan.locate()) for plan in plans), strict=True)
        return np.flatnonzero([one != other for one, other in pairs])
    numbers: dict[str, int] = {}
    files = []
    for origin in origins:
        own = np.array([numbers.setdefault(path, len(numbers)) for path in origin.paths], dtype=np.int64)
        files.append(own[origin.files])
    return np.flatnonzero((files[0] != files[1]) | (origins[0].rows != origins[1].rows))


def _identity(place: Any) -> Hashable:
    return tuple((part.path, part.row) for part in places_of(place))


def _side(loader: Loader, planned: StepPlan) -> StepSide:
    positions = np.array([record.position for record in planned.records], dtype=np.int64)
    names, node = source_names(node_of(loader.dataset)), made_by(loader, planned.step)
    owners = Counter(sources_of(node, positions).tolist() if positions.size else ())
    sources = tuple((name, owners[at]) for at, name in enumerate(names) if owners[at])
    size = own_bytes([each.place for each in planned.records])
    return StepSide(planned.batch, len(planned.records), size, sources)
