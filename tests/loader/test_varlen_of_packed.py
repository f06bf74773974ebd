"""Flat batches of the samples that datasets pack: pieces are those of the samples, from either column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.nodes.packing_cases import gathered

import seekable as sk

DOCUMENTS = sk.from_sequence(
    [
        {"tokens": np.arange(10, 10 + n, dtype=np.uint16), "weight": np.ones(n, np.float32)}
        for n in (3, 9, 1, 0, 4, 20, 2, 7, 7, 5)
    ]
)

PACKS: list[dict[str, Any]] = [
    {"order": "table"},
    {"order": "exchange", "labels": "within"},
    {"order": "megatron", "samples": 12, "next_token": True},
    {"method": "best_fit"},
    {"method": "best_fit", "labels": "within"},
    {"fim": sk.Fim(1.0, 1, 2, 3)},
]


@pytest.mark.parametrize("given", PACKS, ids=str)
def test_pieces_of_a_batch_are_those_of_its_samples(given: dict[str, Any]) -> None:
    given = gathered(**given)
    packed = DOCUMENTS.pack(8, seed=3, align=["weight"], jobs=1, **given)
    short = DOCUMENTS.pack(8, seed=3, columns=["tokens", "cu_seqlens", "max_seqlen"], jobs=1, **given)
    varlen = sk.collate.varlen(pad_documents=30)
    whole, by_ends = (sk.Loader(ds, batch_size=3, collate=varlen) for ds in (packed, short))
    start = 0
    for batch, other in zip(whole, by_ends, strict=True):
        samples = [packed[row] for row in range(start, min(start + 3, len(packed)))]
        start += 3
        assert batch["tokens"].tolist() == [token for sample in samples for token in sample["tokens"]]
        assert batch["positions"].tolist() == [place for sample in samples for place in sample["positions"]]
        assert batch["weight"].dtype == np.float32
        assert len(batch["weight"]) == len(batch["tokens"])
        edges = np.unique(batch["cu_seqlens"])
        ids = np.concatenate([1000 * number + sample["segment_ids"] for number, sample in enumerate(samples)])
        assert edges.tolist() == [0, *(np.flatnonzero(np.diff(ids)) + 1), len(ids)]
        assert batch["max_seqlen"] == np.diff(edges).max()
        assert other["cu_seqlens"].tolist() == batch["cu_seqlens"].tolist()
        assert other["max_seqlen"] == batch["max_seqlen"]
        for piece in np.split(batch["positions"], edges[1:-1]) if "fim" not in given else ():
            assert piece.tolist() == list(range(len(piece))) or not piece.any()


def test_windows_are_one_piece_each() -> None:
    loader = sk.Loader(DOCUMENTS.windows(8, jobs=1), batch_size=2, collate=sk.collate.varlen())
    batch = next(iter(loader))
    assert batch["cu_seqlens"].tolist() == [0, 8, 16]
    assert batch["positions"].tolist() == [*range(8), *range(8)]


def test_worker_processes_make_them_too() -> None:
    packed = DOCUMENTS.pack(
        8, seed=3, method=sk.Packing(order="megatron", samples=9), labels="within", jobs=1
    )
    collate = sk.collate.varlen(pad_documents=20)
    here, there = (list(sk.Loader(packed, batch_size=4, collate=collate, workers=n)) for n in (0, 1))
    for one, other in zip(here, there, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)
        assert "labels" in one
