"""One packed sample: its tokens, the pieces of documents that fill it, its loss mask and its padding.

It comes from a position of a pipeline, or from a step of a stream. That step is made again with the batches
before it, because the content of records decides what is in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, KeyNotFound, StateMismatch
from seekable.loader.checkpoint_files import Saved, generations_in, read_generation, with_files_beside
from seekable.loader.checkpoints import with_description
from seekable.loader.loader import Loader
from seekable.loader.positioned import pipeline_made_with, sizes_of, state_sources, step_of
from seekable.loader.steerable import entries_at
from seekable.nodes.bases import ElementwiseNode, UnaryNode
from seekable.nodes.node import OrderNode, node_of
from seekable.packing.nodes.packed_node import PackedNode
from seekable.packing.nodes.sample_form import LOSS_MASK, TOKENS
from seekable.viewer.engine_at_hand import engine_at_hand
from seekable.viewer.facts.json_documents import json_value, place_as_json
from seekable.viewer.facts.named_sources import source_names, sources_of
from seekable.viewer.facts.reading import COMPUTED
from seekable.viewer.facts.saved_state import journal_facts
from seekable.viewer.facts.token_contents import token_texts
from seekable.viewer.opened import position_after_end
from seekable.viewer.page import Page, PageRows, Redirect
from seekable.viewer.pages.job import asked_job, started

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.nodes.node import Node
    from seekable.state.document import State
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


_ONE = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class SequencePiece:
    """Tokens of a document that stand together in a sample, or one literal token."""

    at: int
    """The place of its first token in the sample."""

    count: int
    """The number of its tokens."""

    document: int | None
    """The row of the document in the packed data; None for a literal token, and in a sample that is known by
    its record alone."""

    start: int
    """Its first token in the document."""

    document_tokens: int
    """The number of tokens of the whole document; those of the piece where the document is None."""

    place: Any
    """The location of the document; None where the document is None."""

    as_label: int
    """1 if one more token of the document ends the sample, as a label alone; else 0."""

    is_joined: bool
    """True if it goes on with the segment of the piece before it, so that attention passes the border."""

    @property
    def is_whole(self) -> bool:
        """True if all of its document is in the sample."""
        return self.count + self.as_label == self.document_tokens

    def document_form(self) -> dict[str, Any]:
        """Return the piece as a JSON-safe dict."""
        return {
            "at": self.at,
            "count": self.count,
            "document": self.document,
            "start": self.start,
            "stop": self.start + self.count,
            "document_tokens": self.document_tokens,
            "as_label": self.as_label,
            "joined": self.is_joined,
            "location": None if self.place is None else place_as_json(self.place),
        }


@dataclass(frozen=True, slots=True)
class PackedSequence:
    """A packed sample as the run gets it."""

    tokens: NDArray[np.integer[Any]]
    """The ids, padding included."""

    pieces: tuple[SequencePiece, ...]
    """What fills the first ``used`` places, in their order."""

    used: int
    """The number of places that do not pad the sample."""

    mask: NDArray[np.bool_] | None
    """False for each place that does not count in the loss; None where the run has no mask."""

    is_of_labels: bool
    """True if the mask is of labels: its place ``i`` is about the token after place ``i``."""

    made_of: str = COMPUTED

    @property
    def padding(self) -> int:
        """The number of places that pad the sample."""
        return self.tokens.size - self.used

    @property
    def in_loss(self) -> int | None:
        """The number of places that count in the loss; None without a mask."""
        return None if self.mask is None else int(self.mask.sum())

    def document(self) -> dict[str, Any]:
        """Return the fact as a JSON-safe dict."""
        return {
            "made_of": self.made_of,
            "length": int(self.tokens.size),
            "used": self.used,
            "padding": self.padding,
            "in_loss": self.in_loss,
            "mask_of": None if self.mask is None else "labels" if self.is_of_labels else "tokens",
            "tokens": self.tokens.tolist(),
            "loss_mask": None if self.mask is None else self.mask.astype(int).tolist(),
            "pieces": [piece.document_form() for piece in self.pieces],
        }


def packed_node_at(node: Node, position: int) -> tuple[PackedNode, int] | None:
    """Return the packing that makes the sample at a position, and its position there; None if none does.

    Example:
        >>> import seekable as sk
        >>> packed_node_at(sk.from_sequence("abc").shuffle(seed=1)._node, 0) is None
        True
    """
    while not isinstance(node, PackedNode):
        if isinstance(node, OrderNode):
            slots, below = type(node).router([node]).route(_ONE, np.array([position], dtype=np.int64))
            node, position = node.children[int(slots[0])], int(below[0])
        elif isinstance(node, UnaryNode) and isinstance(node, ElementwiseNode):
            node = node.children[0]
        else:
            return None
    return node, position


def packed_sequence(node: PackedNode, position: int) -> PackedSequence:
    """Return the sample at a position of a packing; its documents are read, and no function is called.

    Args:
        node: the packing.
        position: from 0 on, of any epoch.

    Raises:
        CorruptRecord: a document cannot be read.
    """
    form = node.form
    has_mask = form.labels is not None or LOSS_MASK in form.align
    columns = (TOKENS, LOSS_MASK) if has_mask else (TOKENS,)
    record = replace(node, form=replace(form, columns=columns), only=None).record(position)
    tokens: Int64s = record[TOKENS]
    epoch, row = divmod(position, node.size)
    placed = node.maker.pieces(np.array([row]), np.array([epoch]))
    stored = placed.documents[placed.documents >= 0]
    places = iter(node.child.plan(stored).locate())
    joined = np.zeros(placed.at.size, np.bool_) if placed.joined is None else placed.joined
    # Of many documents the offsets are memory-mapped, and the lengths are not.
    offsets = node.documents.offsets
    pieces = []
    columns_of = (placed.at, placed.counts, placed.documents, placed.starts, joined)
    for at, count, document, start, is_joined in zip(*(each.tolist() for each in columns_of), strict=True):
        # The last token of a full sample with labels is a label alone.
        shown = min(count, tokens.size - at)
        if document < 0:  # A literal token, or a document that is left out.
            piece = SequencePiece(at, shown, None, 0, count, None, count - shown, is_joined)
        else:
            size = int(offsets[document + 1] - offsets[document])
            piece = SequencePiece(at, shown, document, start, size, next(places), count - shown, is_joined)
        if shown:
            pieces.append(piece)
    used = pieces[-1].at + pieces[-1].count if pieces else 0
    mask = record[LOSS_MASK].astype(np.bool_) if has_mask else None
    return PackedSequence(tokens, tuple(pieces), used, mask, is_of_labels=form.labels is not None)


def recorded_sequence(record: Any, *, made_of: str) -> PackedSequence | None:
    """Return a record as the packed sample that its segments say it is; None if it is not one.

    Args:
        record: what a pipeline delivered.
        made_of: where the record comes from.

    Example:
        >>> record = {"tokens": np.array([5, 6, 7, 0]), "segment_ids": np.array([1, 1, 2, 0])}
        >>> found = recorded_sequence(record, made_of="exact, computed")
        >>> [(piece.at, piece.count) for piece in found.pieces], found.padding
        ([(0, 2), (2, 1)], 1)
    """
    tokens, segments, mask = (_flat(record, key) for key in (TOKENS, "segment_ids", LOSS_MASK))
    if tokens is None or segments is None or tokens.size != segments.size:
        return None
    borders = np.flatnonzero(np.diff(segments)) + 1
    starts = [0, *borders.tolist()] if segments.size else []
    sizes = np.diff([*starts, segments.size]).tolist()
    pieces = [
        SequencePiece(at, size, None, 0, size, None, as_label=0, is_joined=False)
        for at, size in zip(starts, sizes, strict=True)
    ]
    padding = pieces.pop().count if pieces and not segments[-1] else 0
    in_loss = None if mask is None or mask.size != tokens.size else mask.astype(np.bool_)
    of_labels = "labels" in record
    return PackedSequence(
        tokens, tuple(pieces), tokens.size - padding, in_loss, is_of_labels=of_labels, made_of=made_of
    )


def _flat(record: Any, key: str) -> NDArray[np.integer[Any]] | None:
    """Return the integers of a field, in one axis; None where a record has no such field."""
    value = record.get(key) if isinstance(record, Mapping) else None
    is_flat = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iub"
    return value if is_flat else None


_SHOWN = 2048
_MOST_SHOWN = 8192


def sequence(opened: Opened, asked: Asked) -> Page:
    """Return the sample at a position of a pipeline that packs.

    Raises:
        KeyNotFound: the record there is not packed.
    """
    pipeline, position = opened.pipeline(asked.name), int(asked.path["position"])
    loader = pipeline.loader
    node = node_of(loader.dataset)
    found = packed_node_at(node, position)
    if found is None:
        message = (
            f"the record at position {position:,} of {asked.name} is not packed: see position/{position}"
        )
        raise KeyNotFound(message)
    sample = packed_sequence(*found)
    engine, why = _tokenizer_of(opened, sample)
    source = int(sources_of(node, np.array([position]))[0])
    document = {
        "name": asked.name,
        "position": position,
        "epoch": position // node.size if node.size else 0,
        "step": step_of(loader, position),
        "after_end": position_after_end(pipeline, position),
        "source": source_names(node)[source],
        "tokenizer": None if engine is None else engine.library or engine.name,
        **sample.document(),
    }
    shown, table = _shown_tokens(sample, engine, asked)
    shown |= {"pieces": _pieces(opened, sample), "why": why}
    return Page("sequence", f"{asked.name}, sequence {position:,}", document, shown, table=table)


def _shown_tokens(
    sample: PackedSequence, engine: Engine | None, asked: Asked
) -> tuple[dict[str, Any], PageRows]:
    """Return what a template needs for the tokens that an address asks for, and the table of these."""
    at, n = asked.count("at", default=0), asked.count("n", default=_SHOWN, least=1, most=_MOST_SHOWN)
    rows = _rows(sample, at, n)
    blocks = _blocks(sample, rows, engine)
    header = ["place", "id", "text", "piece", "document", "token", "in_loss"]
    return {"blocks": blocks, "at": at, "n": n}, PageRows(header, rows)


def is_packed(opened: Opened, name: str) -> bool:
    """Return True if the first record of a pipeline is a packed sample."""
    node = node_of(opened.pipeline(name).loader.dataset)
    return node.size != 0 and packed_node_at(node, 0) is not None


def _tokenizer_of(opened: Opened, sample: PackedSequence) -> tuple[Engine | None, str | None]:
    """Return the tokenizer that was named or that the token store has; else None, and why."""
    paths = (piece.place.path for piece in sample.pieces if hasattr(piece.place, "path"))
    return engine_at_hand(opened, next(paths, None))


def _rows(sample: PackedSequence, at: int, n: int) -> list[list[Any]]:
    """Return a row for each of n places, in the columns of the table, still without texts."""
    rows: list[list[Any]] = []
    starts = np.array([piece.at for piece in sample.pieces], dtype=np.int64)
    places = np.arange(at, min(at + n, sample.tokens.size))
    numbers = np.searchsorted(starts, places, side="right") - 1
    for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
        of_piece: list[Any] = [None, None, None]
        if place < sample.used:
            piece = sample.pieces[number]
            token = None if piece.document is None else piece.start + place - piece.at
            of_piece = [number + 1, piece.document, token]
        in_loss = None if sample.mask is None else bool(sample.mask[place])
        rows.append([place, int(sample.tokens[place]), None, *of_piece, in_loss])
    return rows


def _blocks(sample: PackedSequence, rows: list[list[Any]], engine: Engine | None) -> list[dict[str, Any]]:
    """Return the rows of each piece together, with texts; those of the padding have no number."""
    blocks: list[dict[str, Any]] = []
    for number, of_piece in itertools.groupby(rows, key=itemgetter(3)):
        some = list(of_piece)
        if engine is not None:
            for row, text in zip(some, token_texts(engine, [row[1] for row in some]), strict=True):
                row[2] = text
        joined = number is not None and sample.pieces[number - 1].is_joined
        blocks.append({"number": number, "joined": joined, "rows": some})
    return blocks


def _pieces(opened: Opened, sample: PackedSequence) -> list[dict[str, Any]]:
    """Return what the table of pieces shows: each with its document and that document's record."""
    return [
        {
            **piece.document_form(),
            "how": _how(piece),
            "links": [
                {"path": place.path, "row": place.row, **opened.linked(place)} for place in _places(piece)
            ],
        }
        for piece in sample.pieces
    ]


def _places(piece: SequencePiece) -> list[Any]:
    place = piece.place
    while isinstance(place, list | tuple) and place:
        place = place[0]
    source = getattr(place, "source", None)
    return [each for each in (place, source) if each is not None]


def _how(piece: SequencePiece) -> str:
    """Return how much of its document a piece is.

    Example:
        >>> from seekable.viewer.pages.sequence import SequencePiece
        >>> _how(SequencePiece(0, 4, 7, 3, 7, None, as_label=0, is_joined=False))
        'end'
    """
    if piece.document is None:
        return "a literal token"
    label = ", the last token as a label alone" if piece.as_label else ""
    if piece.is_whole:
        return f"whole{label}"
    if piece.start + piece.count + piece.as_label == piece.document_tokens:
        return f"end{label}"
    return "middle" if piece.start else "start"


def replay_page(opened: Opened, asked: Asked) -> Page:
    """Return what a replay of a step would make, or how far its job is and the records that it made.

    Raises:
        KeyNotFound: there is no such job, or no such pipeline.
    """
    loader, step = _stream_loader(opened, asked.name), int(asked.path["step"])
    began, _ = nearest_state(opened.states.values(), loader, step)
    document: dict[str, Any] = {
        "name": asked.name,
        "step": step,
        "began": began,
        "batch": sizes_of(loader),
        "batches": step - began + 1,
        **({"journal": journal_facts(entries)} if (entries := entries_at(loader, step)) else {}),
    }
    job = asked_job(opened, asked, has_result=True)
    # As they are and not as in JSON, so that arrays are shown in a line.
    records = job.partial.records if isinstance(job.partial, Replay) else None
    shown = {"records": records and records[:MOST_RECORDS], **job.shown}
    return Page("replay", f"{asked.name}, step {step:,}", {**document, **job.document}, shown)


def start_replay(opened: Opened, asked: Asked) -> Redirect:
    """Start the replay of a step, and return where it is shown."""
    loader, step = _stream_loader(opened, asked.name), int(asked.path["step"])
    began, state = nearest_state(opened.states.values(), loader, step)
    work = replay(loader, step=step, began=began, state=state)
    key = (asked.name, step, began)
    return started(opened, asked, "replay", key, work, f"p/{asked.name}/replay/{step}?job={{job}}")


def _stream_loader(opened: Opened, name: str) -> Loader:
    """Return the loader of a stream.

    Raises:
        InvalidArgument: it is a stream by itself, without batches.
    """
    found = opened.pipeline(name).pipeline
    if not isinstance(found, Loader) or not opened.pipeline(name).is_stream:
        message = f"{name} is a stream without batches: open the Loader of the run to replay its steps"
        raise InvalidArgument(message)
    return found


def replayed_sequence(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return a packed sample of a replayed step; without a replay, lead to the page that starts it.

    Raises:
        KeyNotFound: the step has no such record, or it is not a packed sample.
    """
    step, number = int(asked.path["step"]), int(asked.path["record"])
    if not asked.query.get("job"):
        return Redirect(f"p/{asked.name}/replay/{step}")
    found = opened.jobs[asked.text("job")].partial
    records = found.records or () if isinstance(found, Replay) and found.step == step else ()
    if not isinstance(found, Replay) or number >= len(records):
        message = f"there is no record {number:,} of step {step:,} in this replay of {asked.name}"
        raise KeyNotFound(message)
    sample = recorded_sequence(records[number], made_of=found.made_of)
    if sample is None:
        message = f"record {number:,} of step {step:,} of {asked.name} is not a packed sample"
        raise KeyNotFound(message)
    engine, why = _tokenizer_of(opened, sample)
    document = {
        "name": asked.name,
        "step": step,
        "record": number,
        "records": len(records),
        "tokenizer": None if engine is None else engine.library or engine.name,
        **sample.document(),
    }
    shown, table = _shown_tokens(sample, engine, asked)
    title = f"{asked.name}, record {number:,} of step {step:,}"
    return Page("replayed_sequence", title, document, {**shown, "why": why}, table=table)


MOST_RECORDS = 500
"""The records of a step in its document."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The progress of a replay, and at the end the records of the step."""

    step: int
    began: int
    """The step of the saved state from which batches were made again; 0 for the start of the run."""
    world_size: int
    done: int
    of: int
    """The number of batches to make."""
    records: tuple[Any, ...] | None
    """The records of the step in their order over all ranks; None before it is made."""

    @property
    def made_of(self) -> str:
        """The state from which the records were replayed."""
        return f"exact, replayed from step {self.began:,}"

    def document(self) -> dict[str, Any]:
        """Return the fact, JSON-safe: of the first 500 records with their ranks."""
        shown = None
        if self.records is not None:
            shown = [
                {"rank": at % self.world_size, "record": json_value(record)}
                for at, record in enumerate(self.records[:MOST_RECORDS])
            ]
        return {
            "step": self.step,
            "began": self.began,
            "world_size": self.world_size,
            "done": self.done,
            "of": self.of,
            "unit": "batches",
            "count": None if self.records is None else len(self.records),
            "records": shown,
            "made_of": self.made_of,
        }


def replay(run: Loader, *, step: int, began: int = 0, state: State | None = None) -> Generator[Replay]:
    """Yield how far the replay of a step is, after each batch; the last one has the records.

    The functions of the stream run, and what the journal of the run changed is changed. Records are those
    before ``collate``, without holes. Where a run ends, the next one begins, as a trainer loops over epochs.

    Args:
        run: the loader of a rank of the run, over a stream; it does not move.
        step: the step, from 0.
        began: the step of ``state``.
        state: a state at or before ``step``, of this pipeline or of one that the run went on from with
            ``resume="rows"``; None for the start of the run.

    Raises:
        InvalidArgument: a number is out of range, or ``step`` is before ``began``.
        StateMismatch: the state is of other data.

    Example:
        >>> import seekable as sk
        >>> odd = sk.from_sequence(range(100)).stream(epochs=1).filter(lambda n: n % 2 == 1)
        >>> run = sk.Loader(odd, batch_size=4)
        >>> *_, last = replay(run, step=3)
        >>> last.records, last.done
        ((25, 27, 29, 31), 4)
    """
    checked_count("began", began, least=0)
    checked_count("step", step, least=began)
    loader = Loader(
        pipeline_made_with(run),
        global_batch_size=sizes_of(run),
        rank=0,
        world_size=1,
        collate=tuple,
        prefetch=0,
        journal=run.journal,
    )
    if state is not None:
        loader.load_state_dict(state.document(), resume="rows")
    of, world_size = step - began + 1, run.world_size
    with loader:
        batches = _batches(loader)
        for done in range(of - 1):
            next(batches, None)
            yield Replay(step, began, world_size, done + 1, of, None)
        yield Replay(step, began, world_size, of, of, next(batches, ()))


def _batches(loader: Loader) -> Iterator[tuple[Any, ...]]:
    """Yield the batches of all runs; the end is a run without any."""
    began = -1
    while loader.step > began:
        began = loader.step
        yield from loader


def nearest_state(folders: Iterable[str], loader: Loader, step: int) -> tuple[int, State | None]:
    """Return the state from which a step is made again, and its step; 0 and None for the start of the run.

    It is the newest one at or before the step. One of another pipeline counts where the run went on from it
    with ``resume="rows"``.

    Args:
        folders: the folders of states to look in; those whose newest state is of another run do not count.
        loader: a loader of the run, over a stream.
        step: the step.

    Raises:
        KeyNotFound: another pipeline made the step.
    """
    best: tuple[int, State | None] = (0, None)
    for folder in folders:
        whole = [generation for generation in generations_in(folder) if generation.complete]
        if not whole or not _is_of(loader, read_generation(folder, whole[-1])):
            continue
        before = [generation for generation in whole if generation.step <= step]
        after = next((generation for generation in whole if generation.step > step), None)
        then = None if after is None else read_generation(folder, after)
        if then is not None and (not _is_of(loader, then) or (not before and then.rows)):
            raise _made_by_another(step)
        if before and (best[1] is None or before[-1].step > best[0]):
            saved = Saved(folder, read_generation(folder, before[-1]), folder)
            best = before[-1].step, with_description(with_files_beside(saved), "rows")
    if best[1] is None and loader.dataset.fingerprint != pipeline_made_with(loader).fingerprint:
        raise _made_by_another(step)
    return best


def _made_by_another(step: int) -> KeyNotFound:
    return KeyNotFound(
        f"step {step:,} was made by another pipeline, or from a state that is in no open folder: the run "
        f'went on with this pipeline by resume="rows"; open the folder of its states, or the loader of the '
        f"other pipeline"
    )


def _is_of(loader: Loader, state: State) -> bool:
    """Return True if a loader goes on from a state exactly."""
    try:
        state_sources(state.document(), loader)
    except StateMismatch:
        return False
    return True
