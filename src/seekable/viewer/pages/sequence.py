"""One packed sample, of a pipeline or of a step of a stream that is replayed: tokens, texts, borders."""

from __future__ import annotations

import itertools
import os
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, KeyNotFound, SeekableError
from seekable.formats.tokens.tokenizing.engines import engine_of
from seekable.loader.loader import Loader
from seekable.viewer.facts.replay import MOST_RECORDS, Replay, nearest_state, replay
from seekable.viewer.facts.sequence import packed_node_at, packed_sequence, recorded_sequence
from seekable.viewer.facts.sources import source_names, sources_of
from seekable.viewer.facts.token_contents import engine_of_store, store_document_of, token_texts
from seekable.viewer.opened import position_after_end, step_of
from seekable.viewer.page import Page, PageRows, Redirect
from seekable.viewer.pages.job import asked_job

if TYPE_CHECKING:
    from seekable.formats.tokens.tokenizing.engine import Engine
    from seekable.viewer.facts.sequence import PackedSequence, SequencePiece
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_SHOWN = 2048
_MOST_SHOWN = 8192


def sequence(opened: Opened, asked: Asked) -> Page:
    """Return the sample at a position of a pipeline that packs.

    Raises:
        KeyNotFound: the record there is not packed.
    """
    pipeline, position = opened.pipeline(asked.name), int(asked.path["position"])
    loader = pipeline.loader
    node = loader.dataset.node
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
    node = opened.pipeline(name).loader.dataset.node
    return node.size != 0 and packed_node_at(node, 0) is not None


def _tokenizer_of(opened: Opened, sample: PackedSequence) -> tuple[Engine | None, str | None]:
    """Return the tokenizer that was named or that the token store has; else None, and why."""
    if opened.tokenizer is not None:
        name = opened.tokenizer
        return opened.kept.get(("tokenizer", name), lambda: engine_of(name)), None
    paths = [piece.place.path for piece in sample.pieces if hasattr(piece.place, "path")]
    if not paths:
        return None, "the data does not say which tokenizer its ids are of"
    folder = os.path.dirname(paths[0])
    try:
        store = store_document_of(folder)
        if store is not None and store.tokenizer is not None and store.tokenizer.name:
            name = f"{store.tokenizer.engine}:{store.tokenizer.name}"
            why = f"the ids are of {name}, which a package may fetch, and pages fetch nothing by themselves"
            return None, f"{why}: name it with --tokenizer {name}"
        return engine_of_store(folder), None
    except SeekableError as error:
        return None, str(error)


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
        >>> from seekable.viewer.facts.sequence import SequencePiece
        >>> _how(SequencePiece(0, 4, 7, 3, 7, None, as_label=0, is_joined=False))
        'its end'
    """
    if piece.document is None:
        return "a literal token"
    label = ", the last token as a label alone" if piece.as_label else ""
    if piece.is_whole:
        return f"whole{label}"
    if piece.start + piece.count + piece.as_label == piece.document_tokens:
        return f"its end{label}"
    return "its start, goes on" if not piece.start else "from its middle, goes on"


def replay_page(opened: Opened, asked: Asked) -> Page:
    """Return what a replay of a step would make, or how far its job is and the records that it made.

    Raises:
        KeyNotFound: there is no such job, or no such pipeline.
    """
    loader, step = _stream_loader(opened, asked.name), int(asked.path["step"])
    began, _ = nearest_state(opened.states.values(), loader.dataset.fingerprint, step)
    document: dict[str, Any] = {
        "name": asked.name,
        "step": step,
        "began": began,
        "batch": loader.global_batch_size,
        "batches": step - began + 1,
    }
    job = asked_job(opened, asked, has_result=True)
    # As they are and not as in JSON, so that arrays are shown in a line.
    records = job.partial.records if isinstance(job.partial, Replay) else None
    shown = {"records": records and records[:MOST_RECORDS], **job.shown}
    return Page("replay", f"{asked.name}, step {step:,}", {**document, **job.document}, shown)


def start_replay(opened: Opened, asked: Asked) -> Redirect:
    """Start the replay of a step, and return where it is shown."""
    loader, step = _stream_loader(opened, asked.name), int(asked.path["step"])
    began, state = nearest_state(opened.states.values(), loader.dataset.fingerprint, step)
    batch, ranks = loader.global_batch_size, loader.world_size
    work = replay(loader.dataset, batch=batch, world_size=ranks, step=step, began=began, state=state)
    job = opened.jobs.start("replay", (asked.name, step, began), work)
    return Redirect(f"p/{asked.name}/replay/{step}?job={job.name}")


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
        message = f"record {number:,} of step {step:,} of {asked.name} is no packed sample"
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
