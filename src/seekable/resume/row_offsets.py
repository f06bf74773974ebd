"""Resume by a shard and a row of each source: the document of checkpoints that were written without states.

Such a document says, for each argument of ``sk.open``, in which shard a run was and how many rows of that
shard it had consumed:

    {"resume_state": {"datasets": [{"spec": "corpus/*.jsonl", "shard": "b.jsonl", "row_offset": 120}]}}

It holds nothing of the pipeline, so any pipeline that reads these sources in natural order resumes from it.
Each source delivers the rows after that row, to the end of its epoch, and then whole epochs. Rows in flight
are not part of it, nor is the number of the epoch.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument, NotResumable, StateMismatch
from seekable.nodes.batch import Batch
from seekable.nodes.graph import known_size
from seekable.nodes.mix import Mix
from seekable.order.remaining import Remaining
from seekable.resume.by_rows import ResumedDataset, resumed_dataset, with_begun_readers
from seekable.resume.consumed import readers_of, remainder_of
from seekable.resume.continued import Continued
from seekable.resume.match import Match
from seekable.resume.pipeline_sources import keeps_positions, remaining_by_source, sources_of
from seekable.resume.report import LeafRow, leaf_row, leaves_of, moves_rows, rows_before, shards_of, spec_of
from seekable.state.document import RunState, StreamState
from seekable.stream.lane import StageState
from seekable.stream.lineage import lineage_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.nodes.node import Node
    from seekable.resume.consumed import DatasetProgress
    from seekable.resume.pipeline_sources import NamedSource
    from seekable.resume.report import Shard
    from seekable.stream.stream import Stream

__all__ = ["RowOffset", "dataset_at_offsets", "offsets_in", "resume_state_of", "stream_at_offsets"]

_TEXT = "txt:"
"""The first characters of specs whose shards are named by their paths."""


@dataclass(frozen=True, slots=True)
class RowOffset:
    """The shard that a source is in, and the number of its rows that were consumed."""

    spec: str
    shard: str
    row_offset: int

    @classmethod
    def parse(cls, entry: Any) -> RowOffset:
        """Check one entry of a document.

        Raises:
            CorruptState: the entry lacks a key, or a value has a wrong type; the message names it.
        """
        if not isinstance(entry, dict):
            message = f"an entry of resume_state's 'datasets' must be an object (got {entry!r:.100})"
            raise CorruptState(message)
        for key, kind in (("spec", str), ("shard", str), ("row_offset", int)):
            value = entry.get(key)
            if not isinstance(value, kind) or isinstance(value, bool):
                what = "an integer of at least 0" if kind is int else "a string"
                message = (
                    f"the entry {entry!r:.200} of resume_state must have {key!r}, {what} "
                    f"(got {value!r:.100}): correct it in the document"
                )
                raise CorruptState(message)
        found = cls(entry["spec"], entry["shard"], entry["row_offset"])
        if found.row_offset < 0:
            message = f"the 'row_offset' of {found.spec!r} must be at least 0 (got {found.row_offset})"
            raise CorruptState(message)
        return found


def offsets_in(document: Mapping[str, Any]) -> list[RowOffset]:
    """Return the entries of a document that has ``resume_state``.

    Raises:
        CorruptState: they are not a list, or one of them lacks a key or has a value of a wrong type.

    Example:
        >>> offsets_in({"resume_state": {"datasets": [{"spec": "web", "shard": "a.jsonl", "row_offset": 5}]}})
        [RowOffset(spec='web', shard='a.jsonl', row_offset=5)]
    """
    state = document["resume_state"]
    datasets = state.get("datasets") if isinstance(state, dict) else None
    if not isinstance(datasets, list):
        message = (
            f"'resume_state' must be an object with a list 'datasets' of spec, shard and row_offset "
            f"(got {state!r:.100})"
        )
        raise CorruptState(message)
    return [RowOffset.parse(entry) for entry in datasets]


def resume_state_of(progress: Sequence[DatasetProgress]) -> dict[str, Any]:
    """Return the document of a run, given how far each of its datasets was read.

    Raises:
        NotResumable: a source is not in natural order, or one shard is in it twice.
        InvalidArgument: a node hides how much each source delivered.

    Example:
        >>> import seekable as sk
        >>> from seekable.resume.consumed import progress_of_dataset
        >>> letters = sk.from_sequence("abc", version=1)
        >>> resume_state_of(progress_of_dataset(letters._node, 2))["resume_state"]["datasets"]
        [{'spec': 'from_sequence(<builtins.str of 3>)', 'shard': '<builtins.str 1>', 'row_offset': 2}]
    """
    datasets = []
    for each in progress:
        sources = sources_of(each.dataset, each.name)
        remaining = [own for _, own in remaining_by_source(each.dataset, each.remaining)]
        is_begun = each.remaining.frontier > each.first_epoch * (each.dataset.size or 0)
        for source, own in zip(sources, remaining, strict=True):
            if source.dataset.size != 0:
                datasets.append(asdict(_offset_of(source, own, is_begun=is_begun)))
    return {"resume_state": {"datasets": datasets}}


def dataset_at_offsets(plain: Node, document: Mapping[str, Any]) -> tuple[Node, RunState]:
    """Return a dataset that resumes after the rows of a document, and the state of it there.

    Raises:
        CorruptState: the document is none of this kind.
        StateMismatch: a spec or a shard is not there, or the shard has fewer rows.
        InvalidArgument: a source is not in natural order.
    """
    (resumed,) = _resumed([plain], document)
    dataset, position = resumed.dataset, resumed.position
    return dataset, RunState(dataset.fingerprint_at(position), 0, resumed.epoch, position)


def stream_at_offsets(plain: Stream, document: Mapping[str, Any]) -> tuple[Stream, StreamState]:
    """Return a stream that resumes after the rows of a document, and the state of it: all buffers are empty.

    Raises:
        CorruptState: the document is none of this kind.
        StateMismatch: a spec or a shard is not there, or the shard has fewer rows.
        InvalidArgument: a source is not in natural order, or a stage has no rows to count.
    """
    lineage = lineage_of(plain.stage)
    readers = readers_of(lineage)
    resumed = _resumed([reader.stage.dataset for reader in readers], document)
    stream = with_begun_readers(plain, readers, resumed)
    lanes = {lane: [StageState().document() for _ in lineage.all()] for lane in range(stream.lanes)}
    return stream, StreamState(stream.fingerprint, 0, 0, lanes, stream.lanes)


def _resumed(datasets: Sequence[Node], document: Mapping[str, Any]) -> list[ResumedDataset]:
    by_dataset = [sources_of(dataset) for dataset in datasets]
    offsets = iter(_matched([source for sources in by_dataset for source in sources], document))
    return [
        _resumed_dataset(dataset, sources, [_position(source, next(offsets)) for source in sources])
        for dataset, sources in zip(datasets, by_dataset, strict=True)
    ]


def _resumed_dataset(
    dataset: Node, sources: Sequence[NamedSource], positions: Sequence[int]
) -> ResumedDataset:
    """Return a dataset of which each source begins at a position of its own."""
    draws = sum(positions)
    whole = _position_of_draws(dataset, draws)
    if all(
        own == Remaining((), position)
        for (_, own), position in zip(
            remaining_by_source(dataset, Remaining((), whole)), positions, strict=True
        )
    ):
        # The sources are where the dataset itself is in its first epoch.
        return ResumedDataset(dataset, whole, 0)
    matches = []
    for source, position in zip(sources, positions, strict=True):
        left = remainder_of(source.dataset, Remaining((), position))
        matches.append(Match(left, {id(source.dataset): source.dataset}))
    # All offsets lie in one epoch, which is the first one of the run, also where nothing of it is left.
    return replace(resumed_dataset(dataset, sources, matches, num_draws=draws, num_epochs=0), epoch=0)


def _position_of_draws(node: Node, draws: int) -> int:
    """Return the position of a dataset before which its topmost mixture, or its source, gave some records."""
    if isinstance(node, Mix) or not keeps_positions(node):
        return draws
    below = _position_of_draws(node.children[0], draws)
    return node.batch_of(below) if isinstance(node, Batch) else below


def _matched(sources: Sequence[NamedSource], document: Mapping[str, Any]) -> list[RowOffset | None]:
    """Return the entry of each source; None for a source without records.

    Sources with one spec have their entries in the order of the document.

    Raises:
        CorruptState: the document is none of this kind.
        StateMismatch: a source has no entry, or an entry no source.
    """
    entries: dict[str, list[RowOffset]] = {}
    for entry in offsets_in(document):
        entries.setdefault(entry.spec, []).append(entry)
    specs = [spec_of(source.dataset) or "" for source in sources]
    for spec, found in entries.items():
        if spec not in specs:
            message = (
                f"resume_state names {spec!r}, which the pipeline does not read: it reads "
                f"{', '.join(map(repr, dict.fromkeys(specs)))}. Open it with that spec, or take the entry out"
            )
            raise StateMismatch(message)
        if len(found) != specs.count(spec):
            message = (
                f"resume_state has {len(found)} entries for {spec!r}, and the pipeline reads it "
                f"{specs.count(spec)} times: one entry for each time is needed"
            )
            raise StateMismatch(message)
    return [_next_entry(entries, spec, source) for spec, source in zip(specs, sources, strict=True)]


def _next_entry(entries: dict[str, list[RowOffset]], spec: str, source: NamedSource) -> RowOffset | None:
    if entries.get(spec):
        return entries[spec].pop(0)
    if source.dataset.size == 0:
        return None
    message = (
        f"resume_state has no entry for {spec!r}: add one, with the first shard and 'row_offset': 0 to begin "
        f"it anew"
    )
    raise StateMismatch(message)


def _position(source: NamedSource, offset: RowOffset | None) -> int:
    """Return how many rows of a source's epoch lie before an offset.

    Raises:
        StateMismatch: the source has no such shard, or the shard has fewer rows.
        InvalidArgument: the source is not in natural order.
    """
    if offset is None:
        return 0
    moving = moves_rows(source.dataset)
    if moving is not None:
        message = (
            f"resume_state says a row of {offset.spec!r} in natural order, and {moving!r} delivers rows in "
            f"another one, so that row does not say which rows came before it. Leave the {moving.kind} out, "
            f"or shuffle a stream of the source instead (ds.stream().shuffle(buffer=...)); a run over a "
            f"shuffled source resumes from loader.state_dict()"
        )
        raise InvalidArgument(message)
    at = _row_of_leaf(source.dataset, offset)
    before = rows_before(source.dataset, at)
    assert before is not None
    return min(before, known_size(source.dataset, "resume_state"))


def _row_of_leaf(node: Node, offset: RowOffset) -> LeafRow:
    """Return the row of a leaf that an offset says.

    Raises:
        StateMismatch: the source has no such shard or several, or the shard has fewer rows.
    """
    shards = [(leaf, shard) for leaf in leaves_of(node) for shard in shards_of(leaf)]
    found = _named(offset.shard, shards)
    if len(found) != 1:
        names = [shard.name for _, shard in shards]
        few = ", ".join(map(repr, names[:3]))
        message = (
            f"resume_state names shard {offset.shard!r} of {offset.spec!r}, which has {len(found)} shards of "
            f"that name among its {len(names):,}: {few}{', ...' * (len(names) > len(names[:3]))}. Name one "
            f"of them by its path, whole or below the folder that was opened, or begin the source anew with "
            f"the first"
        )
        raise StateMismatch(message)
    ((leaf, shard),) = found
    if offset.row_offset > shard.count:
        message = (
            f"resume_state says row {offset.row_offset:,} of shard {offset.shard!r} of {offset.spec!r}, and "
            f"{shard.path} has {shard.count:,} rows: the file is another one, or the offset is of another "
            f"shard; correct the entry"
        )
        raise StateMismatch(message)
    return LeafRow(leaf, shard.first + offset.row_offset)


def _named(name: str, shards: Sequence[tuple[Any, Shard]]) -> list[tuple[Any, Shard]]:
    """Return the shards with a path, else with a name, else with a path that ends in the name or the reverse.

    So a shard is found by its name alone, and by a path of another machine.
    """
    tests = (
        lambda shard: shard.path == name,
        lambda shard: shard.name == name,
        lambda shard: shard.path.endswith(f"/{name}"),
        lambda shard: name.endswith(f"/{shard.name}"),
    )
    for test in tests:
        found = [(leaf, shard) for leaf, shard in shards if test(shard)]
        if found:
            return found
    return []


def _offset_of(source: NamedSource, remaining: Remaining, *, is_begun: bool) -> RowOffset:
    """Return the shard and row after the last row that any lane has read of a source.

    Args:
        source: the source.
        remaining: its positions that were not read.
        is_begun: True if the run has read anything. Only then an epoch may be at its end.

    Raises:
        NotResumable: the source is not in natural order, or the shard is in it twice.
    """
    node, position, spec = source.dataset, remaining.frontier, spec_of(source.dataset) or ""
    if isinstance(node, Continued):
        slot, position = node.route_one(position)
        if slot < len(node.olds) and moves_rows(node.olds[slot]) is not None:
            message = (
                f"{source.label} still delivers the rest of an older order (resume='rows'), which a shard "
                f"and a row cannot say: keep loader.state_dict() until that is over"
            )
            raise NotResumable(message)
        node = node.children[slot]
    moving = moves_rows(node)
    if moving is not None:
        message = (
            f"no row says how far {source.label} is: {moving!r} delivers rows in another order than the "
            f"natural one. Keep loader.state_dict(), which resumes any order; or leave the {moving.kind} out"
        )
        raise NotResumable(message)
    size = known_size(node, "resume_state()")
    at = leaf_row(node, position)
    assert at is not None
    row = at.row
    if is_begun and position > 0:
        # Behind the last row of an epoch is not the first row of the next one, and a row of which some items
        # were delivered does not come again.
        last = leaf_row(node, position - 1)
        assert last is not None
        if position % size == 0 or last == at:
            at, row = last, last.row + 1
    shards = shards_of(at.leaf)
    shard = next(shard for shard in shards if shard.first <= at.row < shard.first + shard.count)
    return _entry_of(node, spec, shard, LeafRow(at.leaf, row))


def _entry_of(node: Node, spec: str, shard: Shard, at: LeafRow) -> RowOffset:
    """Return the entry that leads back to a row of a shard, with the shortest name that does.

    Raises:
        NotResumable: the shard is in the source twice.
    """
    names = [shard.path] if spec.startswith(_TEXT) else _names_of(shard)
    for name in names:
        offset = RowOffset(spec, name, at.row - shard.first)
        with suppress(StateMismatch):
            if _row_of_leaf(node, offset) == at:
                return offset
    message = (
        f"no row says how far {spec!r} is: {shard.path} is in it several times, and a shard and a row do not "
        f"say which of these. Keep loader.state_dict(), which resumes any order"
    )
    raise NotResumable(message)


def _names_of(shard: Shard) -> list[str]:
    """Return the names of a shard: below the opened folder, then with one more folder each, then the path."""
    folders = shard.path.removesuffix(shard.name).split("/")[:-1]
    longer = ["/".join((*folders[-count:], shard.name)) for count in range(1, len(folders))]
    return [shard.name, *longer, shard.path]
