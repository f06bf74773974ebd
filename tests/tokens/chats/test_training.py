"""Masks of conversations go through stores, packing, labels, windows, workers, ranks and resume."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.tokens.chats.families import said
from tests.tokens.chats.test_chat import MARKED, TOKENIZER

import seekable as sk
from seekable.formats.tokens.token_store import document_of

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTH = 48
PACKINGS: dict[str, dict[str, Any]] = {
    "concat": {"seed": 3},
    "best_fit": {"seed": 3, "method": "best_fit"},
    "next_token": {"seed": 3, "next_token": True},
    "windows": {},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the store of forty conversations, in parts of nine."""
    folder = tmp_path_factory.mktemp("chats")
    records = [{"messages": said(*(f"{row} {turn}" for turn in range(1 + row % 5)))} for row in range(40)]
    (folder / "chats.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    sk.tokenize(
        folder / "chats.jsonl",
        to=folder / "tokens",
        tokenizer=sk.Chat(TOKENIZER, template=MARKED, most_tokens=LENGTH),
        store=sk.formats.TokenStore(rows_per_file=9),
        jobs=1,
    )
    return str(folder / "tokens")


def packed(store: str, name: str, **options: Any) -> sk.Dataset:
    tk, given = sk.open(store), PACKINGS[name]
    make = tk.windows if name == "windows" else tk.pack
    return make(LENGTH, align=["loss_mask"], **given, **options)


def pieces(ds: sk.Dataset, position: int) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Yield the tokens and the mask of each piece, read from the files as they lie."""
    for place in ds.locate(position):
        tokens = np.fromfile(place.path, "<u2")
        mask = np.fromfile(place.path.replace(".bin", ".loss_mask"), np.uint8)
        at = slice(place.offset // 2, (place.offset + place.length) // 2)
        yield tokens[at], mask[at]


def test_the_store_counts_what_is_trained_on(store: str) -> None:
    tk = sk.open(store)
    document = document_of(store)
    assert document is not None
    assert document.trained == sum(int(record["loss_mask"].sum()) for record in tk) > 0
    assert [part.trained for part in document.parts] == [
        int(np.fromfile(f"{store}/{part.name}.loss_mask", np.uint8).sum()) for part in document.parts
    ]
    assert sum(len(record["tokens"]) for record in tk) == document.tokens


@pytest.mark.parametrize("name", PACKINGS)
def test_a_mask_stays_beside_its_tokens(store: str, name: str) -> None:
    ds = packed(store, name)
    for position, sample in enumerate(ds):
        tokens, mask = map(np.concatenate, zip(*pieces(ds, position), strict=True))
        assert sample["tokens"][: len(tokens)].tolist() == tokens.tolist()
        assert sample["loss_mask"][: len(mask)].tolist() == mask.tolist()
        assert not sample["loss_mask"][len(mask) :].any()


@pytest.mark.parametrize("name", ["concat", "best_fit"])
def test_labels_are_in_the_loss_where_the_next_token_is(store: str, name: str) -> None:
    ds = packed(store, name, labels="within")
    for position, sample in enumerate(ds):
        made = list(pieces(ds, position))
        tokens, mask = map(np.concatenate, zip(*made, strict=True))
        first = np.concatenate([np.arange(len(each)) == 0 for each, _ in made])
        count = min(len(tokens) - 1, LENGTH)
        assert sample["labels"][:count].tolist() == tokens[1 : count + 1].tolist()
        assert sample["loss_mask"][:count].tolist() == (mask & ~first)[1 : count + 1].tolist()


def test_best_fit_trains_on_each_token_of_the_loss_once(store: str) -> None:
    """No conversation is longer than a sample, and the first token of one is never in the loss."""
    ds = packed(store, "best_fit", labels="within")
    for epoch in range(2):
        delivered = Counter[tuple[Any, ...]]()
        for sample in ds.epoch(epoch):
            is_in = sample["loss_mask"] == 1
            delivered.update(
                zip(sample["tokens"][is_in].tolist(), sample["labels"][is_in].tolist(), strict=True)
            )
        expected = Counter[tuple[Any, ...]]()
        for record in sk.open(store):
            pairs = itertools.pairwise(record["tokens"].tolist())
            expected.update(pair for pair, flag in zip(pairs, record["loss_mask"][1:], strict=False) if flag)
        assert delivered == expected


def steps(loader: sk.Loader, count: int | None = None) -> list[list[Any]]:
    return [
        [(sample["tokens"].tolist(), sample["loss_mask"].tolist()) for sample in batch]
        for batch in itertools.islice(loader, count)
    ]


def test_masks_are_the_same_on_any_ranks_with_workers_and_after_a_resume(store: str) -> None:
    ds = packed(store, "best_fit", labels="within").shuffle(seed=5)
    whole = steps(sk.Loader(ds, batch_size=4, collate=list, end="drop"))
    for cut in range(1, len(whole)):
        ranks = [
            sk.Loader(ds, global_batch_size=4, rank=r, world_size=2, collate=list, end="drop") for r in (0, 1)
        ]
        of_ranks = [steps(loader, cut) for loader in ranks]
        assert [[a[0], b[0], a[1], b[1]] for a, b in zip(*of_ranks, strict=True)] == whole[:cut]
        state = json.loads(json.dumps(ranks[0].state_dict()))
        rest = sk.Loader(
            ds, batch_size=4, collate=list, end="drop", workers=sk.Workers(1 + cut % 2, type="thread")
        )
        rest.load_state_dict(state)
        assert steps(rest) == whole[cut:]


def test_a_map_of_a_stream_resumes_at_each_cut() -> None:
    records = [{"messages": said(*(f"{row} {turn}" for turn in range(2 + row % 3)))} for row in range(12)]
    chat = sk.Chat(TOKENIZER, template=MARKED)
    stream = sk.from_sequence(records).shuffle(seed=1).stream(lanes=2, epochs=1).map(chat)
    stream = stream.pack(LENGTH, key="tokens", align=["loss_mask"])
    whole = steps(sk.Loader(stream, batch_size=2, collate=list))
    assert len(whole) > 2
    for cut in range(1, len(whole)):
        loader = sk.Loader(stream, batch_size=2, collate=list)
        assert steps(loader, cut) == whole[:cut]
        again = sk.Loader(stream, batch_size=2, collate=list)
        again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        assert steps(again) == whole[cut:]
