"""One packed sample, against the record of the run and the documents that its pieces name."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

import seekable as sk
from seekable.viewer.pages.sequence import packed_node_at, packed_sequence, recorded_sequence

FORMS: list[dict[str, Any]] = [
    {},
    {"labels": "within"},
    {"labels": "across", "columns": ["cu_seqlens"]},
    {"next_token": True},
    {"method": sk.Packing("best_fit", pad=7), "labels": "within"},
    {"method": "best_fit", "align": ["loss_mask"]},
    {"align": ["loss_mask"], "labels": "within"},
    {"fim": sk.Fim(rate=0.6, prefix=251, suffix=252, middle=253)},
]


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> sk.Dataset:
    """Documents of ids, with a mask for each of their tokens."""
    folder = tmp_path_factory.mktemp("lists")
    rng = np.random.default_rng(5)
    rows = [rng.integers(0, 250, int(size)).tolist() for size in rng.integers(1, 60, 40)]
    lines = [json.dumps({"tokens": row, "loss_mask": [token % 2 for token in row]}) for row in rows]
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    return sk.open(folder / "a.jsonl")


def tokens_of(lists: sk.Dataset, piece: Any, token: int) -> list[int]:
    """Return the tokens that a piece says it has."""
    if piece.document is None:
        return [token]
    document: list[int] = lists[piece.document]["tokens"]
    assert piece.document_tokens == len(document)
    assert piece.is_whole == (piece.start == 0 and piece.count + piece.as_label == len(document))
    return document[piece.start : piece.start + piece.count]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_sequence_is_the_sample_of_the_run_made_of_its_pieces(
    lists: sk.Dataset, form: dict[str, Any]
) -> None:
    data = lists.pack(48, seed=2, **form).shuffle(seed=3)
    whole = {
        **form,
        "columns": ["tokens", "segment_ids", *(["loss_mask"] * ("labels" in form or "align" in form))],
    }
    records = lists.pack(48, seed=2, **whole).shuffle(seed=3)
    for position in itertools.chain(range(len(data)), [3 * len(data) + 1]):
        found = packed_node_at(data._node, position)
        assert found is not None
        sample, record = packed_sequence(*found), records._node.record(position)
        assert sample.tokens.tolist() == record["tokens"].tolist()
        made = [
            token
            for piece in sample.pieces
            for token in tokens_of(lists, piece, int(sample.tokens[piece.at]))
        ]
        assert made == sample.tokens[: sample.used].tolist()
        assert [piece.at for piece in sample.pieces] == [
            0,
            *itertools.accumulate(piece.count for piece in sample.pieces),
        ][:-1]
        segments = record["segment_ids"]
        assert sample.padding == (segments == 0).sum()
        heads = [piece.at for piece in sample.pieces if not piece.is_joined]
        assert heads == [0, *(np.flatnonzero(np.diff(segments[: sample.used])) + 1).tolist()]
        mask = record.get("loss_mask")
        assert (sample.mask is None) == (mask is None)
        assert mask is None or (sample.mask == (mask != 0)).all()
        assert json.loads(json.dumps(sample.document()))["padding"] == sample.padding


def test_a_piece_names_the_place_of_its_document(lists: sk.Dataset) -> None:
    found = packed_node_at(lists.pack(48, seed=2)._node, 0)
    assert found is not None
    for piece in packed_sequence(*found).pieces:
        assert (piece.place.row, piece.document_form()["location"]["row"]) == (piece.document, piece.document)


def test_what_is_not_packed_has_no_sequence(lists: sk.Dataset) -> None:
    packed = lists.pack(48, seed=2)
    assert packed_node_at(lists.shuffle(seed=1)._node, 0) is None
    assert packed_node_at(packed.map(len)._node, 1) == (packed._node, 1)
    both = sk.concat([packed, lists.select([0])])
    assert packed_node_at(both._node, len(packed)) is None
    assert packed_node_at(packed.batch(2)._node, 0) is None


def test_a_record_of_a_stream_has_the_segments_that_fill_it(lists: sk.Dataset) -> None:
    stream = lists.stream(lanes=2, epochs=1).pack(48, key="tokens", align=["loss_mask"], pad=9)
    found = list(stream)
    assert len(found) > 20
    for record in found:
        sample = recorded_sequence(record, made_of="a test")
        assert sample is not None
        assert (sample.made_of, sample.is_of_labels) == ("a test", False)
        assert sample.tokens.tolist() == record["tokens"].tolist()
        segments = [number + 1 for number, piece in enumerate(sample.pieces) for _ in range(piece.count)] + [
            0
        ] * sample.padding
        assert segments == record["segment_ids"].tolist()
        assert sample.used + sample.padding == sum(piece.count for piece in sample.pieces) + sample.padding
        assert sample.mask is not None
        assert sample.mask.astype(int).tolist() == record["loss_mask"].tolist()
        json.dumps(sample.document())
    assert any(sample["segment_ids"][-1] == 0 for sample in found)


def test_what_is_no_packed_sample_is_none() -> None:
    ids = np.arange(4)
    for record in (
        None,
        [1],
        {},
        {"tokens": ids},
        {"tokens": [1], "segment_ids": [1]},
        {"tokens": ids, "segment_ids": ids[:3]},
        {"tokens": ids[None], "segment_ids": ids[None]},
        {"tokens": ids, "segment_ids": ids / 2},
    ):
        assert recorded_sequence(record, made_of="a test") is None
    empty = recorded_sequence({"tokens": ids[:0], "segment_ids": ids[:0]}, made_of="a test")
    assert empty is not None
    assert (empty.pieces, empty.padding, empty.in_loss) == ((), 0, None)
    padded = recorded_sequence({"tokens": ids, "segment_ids": ids * 0, "loss_mask": ids[:1]}, made_of="x")
    assert padded is not None
    assert (padded.pieces, padded.padding, padded.mask) == ((), 4, None)
