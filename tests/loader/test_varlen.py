"""Flat batches of packed samples: pieces, padding, aligned arrays, workers, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import seekable as sk
from seekable.loader.collate import takes_columns

# Two samples of 6 tokens: pieces of 4 and 2; pieces of 1 and 3, and padding of 2.
SAMPLES = [
    {
        "tokens": np.array([5, 6, 7, 8, 9, 10], dtype=np.uint16),
        "segment_ids": np.array([1, 1, 1, 1, 2, 2], dtype=np.int32),
        "positions": np.array([0, 1, 2, 3, 7, 8], dtype=np.int32),
        "labels": np.array([6, 7, 8, 9, 10, 11], dtype=np.uint16),
        "loss_mask": np.array([1, 1, 1, 0, 1, 1], dtype=np.uint8),
    },
    {
        "tokens": np.array([3, 4, 4, 4, 0, 0], dtype=np.uint16),
        "segment_ids": np.array([1, 2, 2, 2, 0, 0], dtype=np.int32),
        "positions": np.array([0, 0, 1, 2, 0, 0], dtype=np.int32),
        "labels": np.array([4, 4, 4, 0, 0, 0], dtype=np.uint16),
        "loss_mask": np.array([0, 1, 1, 0, 0, 0], dtype=np.uint8),
    },
]


def columns_of(samples: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.stack([sample[name] for sample in samples]) for name in samples[0]}


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name])
        and getattr(one[name], "dtype", None) == getattr(other[name], "dtype", None)
        for name in one
    )


def test_a_batch_is_flat_and_has_its_pieces() -> None:
    batch = sk.collate.varlen()(SAMPLES)
    assert set(batch) == {"tokens", "cu_seqlens", "max_seqlen", "positions", "labels", "loss_mask"}
    assert batch["tokens"].tolist() == [5, 6, 7, 8, 9, 10, 3, 4, 4, 4, 0, 0]
    assert batch["tokens"].dtype == np.uint16
    # The padding is a piece of its own: the last entry is the number of tokens.
    assert batch["cu_seqlens"].tolist() == [0, 4, 6, 7, 10, 12]
    assert batch["cu_seqlens"].dtype == np.int32
    assert batch["max_seqlen"] == 4
    assert type(batch["max_seqlen"]) is int
    assert batch["positions"].tolist() == [0, 1, 2, 3, 7, 8, 0, 0, 1, 2, 0, 0]
    assert batch["loss_mask"].tolist() == [1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0]
    assert batch["labels"].dtype == np.uint16


def test_columns_and_arrow_give_the_batch_of_the_records() -> None:
    varlen = sk.collate.varlen(pad_documents=8)
    expected = varlen(SAMPLES)
    assert equal(varlen(columns_of(SAMPLES)), expected)
    lists = [{name: np.asarray(value).tolist() for name, value in sample.items()} for sample in SAMPLES]
    found = varlen(pa.RecordBatch.from_pylist(lists))
    assert {name: np.asarray(value).tolist() for name, value in found.items()} == {
        name: np.asarray(value).tolist() for name, value in expected.items()
    }


def test_cu_seqlens_is_filled_up_with_the_number_of_tokens() -> None:
    assert sk.collate.varlen(pad_documents=5)(SAMPLES)["cu_seqlens"].tolist() == [0, 4, 6, 7, 10, 12]
    assert sk.collate.varlen(pad_documents=7)(SAMPLES)["cu_seqlens"].tolist() == [0, 4, 6, 7, 10, 12, 12, 12]
    with pytest.raises(sk.errors.InvalidArgument, match=r"5 pieces.*pad_documents=4: pass at least 5"):
        sk.collate.varlen(pad_documents=4)(SAMPLES)


def test_positions_are_counted_where_there_are_none() -> None:
    samples = [{"tokens": s["tokens"], "segment_ids": s["segment_ids"]} for s in SAMPLES]
    batch = sk.collate.varlen()(samples)
    assert list(batch) == ["tokens", "cu_seqlens", "max_seqlen", "positions"]
    assert batch["positions"].tolist() == [0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 0, 1]
    assert batch["positions"].dtype == np.int32


def test_a_window_is_one_piece() -> None:
    windows = [{"tokens": np.arange(3)}, {"tokens": np.arange(3)}]
    for batch in (sk.collate.varlen()(windows), sk.collate.varlen()(columns_of(windows))):
        assert batch["cu_seqlens"].tolist() == [0, 3, 6]
        assert batch["positions"].tolist() == [0, 1, 2, 0, 1, 2]


def test_documents_of_any_length_are_pieces() -> None:
    documents = [{"tokens": np.arange(n)} for n in (2, 0, 3)]
    batch = sk.collate.varlen()(documents)
    assert batch["cu_seqlens"].tolist() == [0, 2, 5]
    assert batch["tokens"].tolist() == [0, 1, 0, 1, 2]
    assert sk.collate.varlen()([{"tokens": np.arange(0)}])["cu_seqlens"].tolist() == [0]


def test_pieces_come_from_cu_seqlens_of_the_samples() -> None:
    # Filled up or not, with the padding or without it.
    ends = ([0, 4, 6], [0, 1, 4])
    samples = [
        {"tokens": sample["tokens"], "cu_seqlens": np.array(some, dtype=np.int32), "max_seqlen": 4}
        for sample, some in zip(SAMPLES, ends, strict=True)
    ]
    batch = sk.collate.varlen()(samples)
    assert batch["cu_seqlens"].tolist() == [0, 4, 6, 7, 10, 12]
    assert batch["max_seqlen"] == 4
    samples[0]["cu_seqlens"] = np.array([0, 4, 6, 6, 6], dtype=np.int32)
    assert equal(sk.collate.varlen()(samples), batch)
    samples[1]["cu_seqlens"] = np.array([0, 1, 4, 6, 6], dtype=np.int32)
    assert equal(sk.collate.varlen()(columns_of(samples)), batch)


def test_what_is_no_value_a_token_is_collated() -> None:
    samples = [{"tokens": np.arange(2), "id": n, "name": "ab", "pair": [1, 2]} for n in (7, 8)]
    batch = sk.collate.varlen()(samples)
    assert batch["id"].tolist() == [7, 8]
    assert batch["name"] == ["ab", "ab"]
    assert batch["pair"].tolist() == [1, 2, 1, 2]
    deep = [{"tokens": np.arange(2), "scores": np.ones((2, 3)), "more": np.ones(5)}] * 2
    batch = sk.collate.varlen()(deep)
    assert batch["scores"].shape == (4, 3)
    assert batch["more"].shape == (2, 5)


def test_another_key_names_the_tokens() -> None:
    batch = sk.collate.varlen(key="ids")([{"ids": np.arange(2)}])
    assert list(batch) == ["ids", "cu_seqlens", "max_seqlen", "positions"]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_gives_flat_batches(workers: int) -> None:
    collate = sk.collate.varlen(pad_documents=6)
    loader = sk.Loader(sk.from_sequence(SAMPLES), batch_size=2, collate=collate, workers=workers)
    (batch,) = loader
    assert equal(batch, collate(SAMPLES))


def test_packed_documents_of_a_stream() -> None:
    texts = [{"tokens": np.full(n, n)} for n in (3, 2, 4, 1)]
    stream = sk.from_sequence(texts).stream(lanes=1).pack(6, key="tokens")
    (batch,) = sk.Loader(stream, batch_size=2, steps=1, collate=sk.collate.varlen())
    assert batch["tokens"].tolist()[:6] == [3, 3, 3, 2, 2, 4]
    assert batch["cu_seqlens"].tolist()[:4] == [0, 3, 5, 6]
    assert batch["positions"].tolist()[:6] == [0, 1, 2, 0, 1, 0]


def test_it_is_pickled_and_takes_columns() -> None:
    varlen = sk.collate.varlen(pad_documents=3)
    assert pickle.loads(pickle.dumps(varlen)) == varlen
    assert takes_columns(varlen)
    assert takes_columns(sk.collate)
    assert pickle.loads(pickle.dumps(sk.collate)) is sk.collate


def test_the_default_collate_is_public() -> None:
    assert sk.collate([{"a": 1}, {"a": 2}])["a"].tolist() == [1, 2]
    fill = sk.FillCollate(values={"tokens": np.arange(1)}, then=sk.collate.varlen())
    assert fill([{"tokens": None}, {"tokens": np.arange(2)}])["cu_seqlens"].tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("records", "error", "message"),
    [
        ([], sk.errors.InvalidArgument, "at least one sample"),
        ([{"text": "a"}], sk.errors.InvalidArgument, "the key 'tokens'"),
        ({"text": ["a"]}, sk.errors.InvalidArgument, "the key 'tokens'"),
        ([[1, 2]], sk.errors.WrongType, "got a list, sample 0"),
        ([{"tokens": [1]}, {"tokens": [1], "x": 1}], sk.errors.InvalidArgument, "sample 1 .* differ in 'x'"),
    ],
)
def test_wrong_samples_are_refused(records: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sk.collate.varlen()(records)


@pytest.mark.parametrize("pad", [0, -1, 1.5, True, "8"])
def test_a_wrong_number_of_documents_is_refused(pad: Any) -> None:
    with pytest.raises((sk.errors.InvalidArgument, sk.errors.WrongType), match="pad_documents"):
        sk.collate.varlen(pad_documents=pad)


@pytest.mark.parametrize("key", [None, 3, ["tokens"]])
def test_a_key_that_is_no_string_is_refused(key: Any) -> None:
    with pytest.raises(sk.errors.WrongType, match="key="):
        sk.collate.varlen(key=key)
