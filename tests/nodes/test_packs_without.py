"""Documents left out of packed samples become padding; every other token stays in its place."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.nodes.token_data import write_pair
from tests.thrift import sample

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COUNT, OUT = 40, (3, 4, 11, 39)
ALL = ["tokens", "segment_ids", "positions", "cu_seqlens", "max_seqlen"]


def documents() -> list[np.ndarray[Any, np.dtype[Any]]]:
    """Documents whose tokens say which one they are of: ``100 * document + place``, but 0 for none."""
    return [100 * (row + 1) + np.arange(1 + row * 5 % 13) for row in range(COUNT)]


def in_files(folder: Path) -> sk.Dataset:
    for name, rows in (("a", slice(0, 15)), ("b", slice(15, COUNT))):
        write_pair(folder / f"{name}.bin", documents()[rows])
    return sk.open(str(folder / "*.bin"), format="tokens")


def in_memory() -> sk.Dataset:
    records = [
        {"tokens": tokens.tolist(), "loss_mask": [int(row % 5 > 0)] * tokens.size}
        for row, tokens in enumerate(documents())
    ]
    return sk.from_sequence(records, version="docs")


PACKS: dict[str, Callable[[sk.Dataset], sk.Dataset]] = {
    "concat": lambda ds: ds.pack(12, seed=3, columns=ALL, jobs=1),
    "exchange": lambda ds: ds.pack(12, seed=3, method=sk.Packing(order="exchange"), columns=ALL, jobs=1),
    "best fit": lambda ds: ds.pack(16, seed=3, method="best_fit", columns=ALL, jobs=1),
    "fim": lambda ds: ds.pack(12, seed=3, fim=sk.Fim(0.6, 9001, 9002, 9003), columns=ALL, jobs=1),
    "within": lambda ds: ds.pack(12, seed=3, labels="within", columns=[*ALL, "labels", "loss_mask"], jobs=1),
    "across": lambda ds: ds.pack(12, seed=3, labels="across", columns=[*ALL, "labels", "loss_mask"], jobs=1),
    "pad": lambda ds: ds.pack(
        16, seed=3, method=sk.Packing("best_fit", pad=7, positions="document"), labels="across", jobs=1
    ),
    "megatron": lambda ds: ds.pack(
        12, seed=3, method=sk.Packing(order="megatron"), next_token=True, columns=ALL, jobs=1
    ),
    "windows": lambda ds: ds.windows(12, columns=ALL, jobs=1),
}


def is_out(tokens: Any) -> Any:
    """Return which tokens are of documents that are left out; sentinels are none."""
    return np.isin(tokens // 100 - 1, OUT) & (tokens < 9000)


def expected(record: dict[str, Any], pad: int) -> dict[str, Any]:
    """Return the sample as it must be, made of the sample with all documents."""
    out = is_out(record["tokens"])
    if "segment_ids" in record:  # Sentinels are left out with their document.
        gone = np.unique(record["segment_ids"][out])
        out |= np.isin(record["segment_ids"], gone[gone > 0])
    made = dict(record, tokens=np.where(out, pad, record["tokens"]))
    for name in ("segment_ids", "positions"):
        if name in record:
            shown = out[: record[name].size]
            made[name] = np.where(shown, 0, record[name])
    if "labels" in record:
        ahead = is_out(record["labels"])
        made["labels"] = np.where(ahead, pad, record["labels"])
        made["loss_mask"] = np.where(out | ahead, 0, record["loss_mask"])
    return made


@pytest.mark.parametrize(("name", "where"), sample(itertools.product(PACKS, ["files", "memory"]), of=2))
def test_pieces_become_padding_and_all_else_stays(name: str, where: str, tmp_path: Path) -> None:
    dataset = in_files(tmp_path) if where == "files" else in_memory()
    packed = PACKS[name](dataset)
    clean = packed.without([dataset.locate(row) for row in OUT])
    positions = np.arange(2 * len(packed))
    before, after = packed._node.fetch(positions), clean._node.fetch(positions)
    changed = 0
    for position, (whole, found) in enumerate(zip(before, after, strict=True)):
        wanted = expected(whole, 7 if name == "pad" else 0)
        alone = clean._node.record(position)
        assert wanted.keys() == found.keys() == alone.keys()
        for column in wanted:
            assert np.array_equal(found[column], wanted[column]), (position, column)
            assert np.array_equal(alone[column], wanted[column])
            assert np.asarray(found[column]).dtype == np.asarray(whole[column]).dtype
        changed += not np.array_equal(whole["tokens"], found["tokens"])
    assert changed


@pytest.mark.parametrize("name", ["concat", "best fit", "windows"])
def test_what_is_left_out_is_neither_located_nor_found(name: str, tmp_path: Path) -> None:
    dataset = in_files(tmp_path)
    gone = [dataset.locate(row) for row in OUT]
    packed = PACKS[name](dataset)
    clean = packed.without(gone)
    for place in gone:
        # The last document is in the tail that windows leave out.
        assert packed.find(place.path, place.row) or place is gone[-1]
        assert not clean.find(place.path, place.row)
    kept = dataset.locate(20)
    assert packed.find(kept.path, kept.row) == clean.find(kept.path, kept.row)
    places = {(place.path, place.row) for sample in range(len(clean)) for place in clean.locate(sample)}
    assert places.isdisjoint((place.path, place.row) for place in gone)


def test_an_aligned_mask_of_the_loss_is_enough() -> None:
    dataset = in_memory()
    windows = dataset.windows(12, align=["loss_mask"], jobs=1)
    clean = windows.without([dataset.locate(row) for row in OUT])
    for whole, found in zip(windows, clean, strict=True):
        out = is_out(whole["tokens"])
        assert found["tokens"].tolist() == np.where(out, 0, whole["tokens"]).tolist()
        assert found["loss_mask"].tolist() == np.where(out, 0, whole["loss_mask"]).tolist()


def test_samples_without_a_mask_are_refused(tmp_path: Path) -> None:
    dataset = in_files(tmp_path)
    for packed in (dataset.windows(12), dataset.pack(12, seed=1, columns=["tokens"])):
        with pytest.raises(sk.errors.InvalidArgument, match="no column that says what is padding"):
            packed.without([dataset.locate(3)])


def test_packed_samples_are_described_saved_and_left_out_in_turn(tmp_path: Path) -> None:
    dataset = in_files(tmp_path)
    gone = [dataset.locate(row) for row in OUT]
    packed = PACKS["within"](dataset).shuffle(seed=1)
    clean = packed.without(gone)
    assert clean.fingerprint == packed.without(gone[:1]).without(gone[1:], fill="hole").fingerprint
    assert clean.fingerprint != packed.fingerprint
    assert clean.without(gone)._node is clean._node
    assert "4 of 40 documents are padding" in clean.explain()
    clean.save(tmp_path / "pipeline.json")
    again = sk.load_pipeline(tmp_path / "pipeline.json")
    assert again.fingerprint == clean.fingerprint
    assert all(np.array_equal(again[0][name], clean[0][name]) for name in clean[0])
    only = clean.select_columns(["tokens"])
    assert only[5]["tokens"].tolist() == clean[5]["tokens"].tolist()
