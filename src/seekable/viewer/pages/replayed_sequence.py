"""One packed sample of a step of a stream, of the records that a replay of the step has made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import KeyNotFound
from seekable.viewer.facts.replay import Replay
from seekable.viewer.facts.sequence import recorded_sequence
from seekable.viewer.page import Page, Redirect
from seekable.viewer.pages.sequence import shown_tokens, tokenizer_of

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


def replayed_sequence(opened: Opened, asked: Asked) -> Page | Redirect:
    """Return a packed sample of a replayed step; without a replay, lead to the page that starts it.

    Raises:
        KeyNotFound: the step has no such record, or it is no packed sample.
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
    engine, why = tokenizer_of(opened, sample)
    document = {
        "name": asked.name,
        "step": step,
        "record": number,
        "records": len(records),
        "tokenizer": None if engine is None else engine.library or engine.name,
        **sample.document(),
    }
    shown, table = shown_tokens(sample, engine, asked)
    title = f"{asked.name}, record {number:,} of step {step:,}"
    return Page("replayed_sequence", title, document, {**shown, "why": why}, table=table)
