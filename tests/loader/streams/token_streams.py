"""The stream that runs on several ranks are given here: filtered, mixed and packed; and what should come."""

from __future__ import annotations

import itertools
from typing import Any

import seekable as sk

LANES = 12
BATCH = 12
"""Sequences of a batch over all ranks, which 1, 2, 3 and 4 divide."""
LENGTH = 8


def web(number: int) -> list[int]:
    """Return the tokens of a document, each of which comes once an epoch."""
    return [number * 8 + place + 1 for place in range(1 + number % 7)]


def code(number: int) -> list[int]:
    """Return the tokens of a document of another source."""
    return [100_000 + token for token in web(number)]


def kept(document: list[int]) -> bool:
    """Return True for the documents that pass the filter."""
    return document[0] % 3 != 0


def stream_of(*, seed: int = 1, lanes: int = LANES) -> sk.Stream:
    """Return a stream without end of packed sequences of two filtered sources."""
    parts = {
        read.__name__: sk.from_sequence(range(size), version=1)
        .shuffle(seed=seed)
        .map(read)
        .stream(lanes=lanes)
        for read, size in ((web, 700), (code, 300))
    }
    mixed = sk.mix(
        {name: part.filter(kept) for name, part in parts.items()}, weights={"web": 2, "code": 1}, seed=5
    )
    return mixed.pack(LENGTH)


def tokens_of(sequences: list[dict[str, Any]]) -> list[int]:
    """Return the tokens of a batch, one sequence after another."""
    return [token for sequence in sequences for token in sequence["tokens"].tolist()]


def stream_loader(
    rank: int = 0, world_size: int = 1, *, stream: dict[str, Any] | None = None, **given: Any
) -> sk.Loader:
    """Return a loader of a rank, whose batches are tokens."""
    pipeline = stream_of(**(stream or {}))
    arguments = {"collate": tokens_of, "global_batch_size": BATCH, **given}
    return sk.Loader(pipeline, rank=rank, world_size=world_size, **arguments)


def expected_tokens(count: int) -> list[list[int]]:
    """Return the tokens of the first batches of a run that nothing interrupts, sorted within each."""
    return [sorted(batch) for batch in itertools.islice(stream_loader(prefetch=0), count)]
