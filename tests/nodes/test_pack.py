"""Packed samples against lists: which tokens come, how often, and what stands beside them."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nodes.packing_cases import gathered
from tests.nodes.token_data import dataset_of, simple_source
from tests.thrift import some

import seekable as sk
from seekable.packing.order import megatron_order
from seekable.storage.mapped import MappedFile
from seekable.storage.memory import DiskActivity
from seekable.testing.resume import same

if TYPE_CHECKING:
    from collections.abc import Callable

LIST = "<builtins.list>"
ALL = ("tokens", "segment_ids", "positions", "cu_seqlens", "max_seqlen", "mask")


def corpus(lengths: list[int], dtype: Any = np.int64) -> list[dict[str, Any]]:
    """Return documents whose tokens are all different, with a mask."""
    ends = list(itertools.accumulate(lengths, initial=0))
    return [
        {"tokens": np.arange(a, b, dtype=dtype), "mask": (np.arange(a, b) % 3).astype(np.uint8)}
        for a, b in itertools.pairwise(ends)
    ]


def packed(lengths: list[int], length: int = 4, **options: Any) -> sk.Dataset:
    given: dict[str, Any] = {"seed": 7, "align": ["mask"], "jobs": 1, **options}
    return sk.from_sequence(corpus(lengths)).pack(length, **gathered(**given))


def check_sample(sample: dict[str, Any], documents: list[dict[str, Any]], *, document: bool = False) -> None:
    """Check the columns of a sample against its tokens, each of which stands in one place of one document."""
    of = {
        int(token): (row, place)
        for row, record in enumerate(documents)
        for place, token in enumerate(record["tokens"].tolist())
    }
    used = int((sample["segment_ids"] > 0).sum())
    tokens = sample["tokens"].tolist()
    pieces = [[tokens[0]]]
    for before, token in itertools.pairwise(tokens[:used]):
        if token == before + 1 and of[token][0] == of[before][0]:
            pieces[-1].append(token)
        else:
            pieces.append([token])
    sizes = [len(piece) for piece in pieces]
    rest = len(tokens) - used
    numbers = [number for number, size in enumerate(sizes, 1) for _ in range(size)]
    assert sample["segment_ids"].tolist() == numbers + [0] * rest
    firsts = [of[piece[0]][1] if document else 0 for piece in pieces]
    counted = [first + at for first, size in zip(firsts, sizes, strict=True) for at in range(size)]
    assert sample["positions"].tolist() == counted + [0] * rest
    assert sample["cu_seqlens"].tolist() == list(itertools.accumulate(sizes, initial=0))
    assert sample["max_seqlen"] == max(sizes)
    assert type(sample["max_seqlen"]) is int
    assert sample["mask"].tolist() == [token % 3 for token in tokens[:used]] + [0] * rest
    kinds = [sample[name].dtype for name in ("segment_ids", "positions", "cu_seqlens", "mask")]
    assert kinds == [np.int32, np.int32, np.int32, np.uint8]


METHODS: list[dict[str, Any]] = [
    {"order": "table"},
    {"order": "exchange"},
    {"method": "best_fit"},
    {"method": "best_fit", "most": 2},
]


def check_corpus(lengths: list[int], length: int, options: dict[str, Any], *, next_token: bool) -> None:
    """Check three epochs of a corpus: each token once, the columns, the twin, and the way up."""
    documents, extra, fits = corpus(lengths), int(next_token), "method" in options
    ds, total, width = sk.from_sequence(documents), sum(lengths), length + int(next_token)
    if total < (1 if fits else width):
        with pytest.raises(
            sk.errors.InvalidArgument, match=f"documents have {total:,} tokens, and a sample takes"
        ):
            ds.pack(length, seed=7, jobs=1, next_token=next_token, **gathered(**options))
        return
    ds = ds.pack(
        length, seed=7, jobs=1, next_token=next_token, align=["mask"], columns=ALL, **gathered(**options)
    )
    assert fits or len(ds) == (total - extra) // length
    for epoch in range(3):
        view = ds.epoch(epoch)
        samples = list(view)
        used = [sample["tokens"][: sample["cu_seqlens"][-1]].tolist() for sample in samples]
        for sample in samples:
            assert len(sample["tokens"]) == width
            check_sample(sample, documents)
            assert len(sample["cu_seqlens"]) - 1 <= options.get("most", width)
        own = Counter(token for tokens in used for token in (tokens if fits else tokens[:length]))
        assert max(own.values()) == 1
        assert total - len(own) < (1 if fits else width)
        assert all(same(view[row], sample) for row, sample in enumerate(samples))
        for row, record in enumerate(documents):
            here = [i for i, tokens in enumerate(used) if not {*record["tokens"]}.isdisjoint(tokens)]
            assert ds.find(LIST, row, epoch=epoch) == [epoch * len(ds) + i for i in here]
            if fits and 0 < len(record["tokens"]) <= width:
                assert len(here) == 1
    rows = [[place.row for place in places] for places in ds.locate(list(range(len(ds))))]
    starts = np.cumsum([0, *lengths])
    for sample, places in zip(ds, rows, strict=True):
        heads = sample["tokens"][sample["cu_seqlens"][:-1]]
        assert places == (np.searchsorted(starts, heads, side="right") - 1).tolist()


@given(
    st.lists(st.integers(0, 12), max_size=30),
    st.integers(1, 14),
    st.sampled_from(METHODS),
    st.integers(0, 1),
)
@settings(max_examples=some(20, of=3))
def test_each_token_comes_once_an_epoch(
    lengths: list[int], length: int, options: dict[str, Any], extra: int
) -> None:
    check_corpus(lengths, length, options, next_token=bool(extra))


@pytest.mark.exhaustive
@pytest.mark.parametrize("options", METHODS)
def test_a_thousand_corpora(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    for _ in range(some(1000) // len(METHODS)):
        most = int(rng.integers(1, 40))
        lengths = rng.integers(0, most, rng.integers(1, 40)).tolist()
        check_corpus(lengths, int(rng.integers(1, 30)), options, next_token=bool(rng.integers(2)))


def test_the_golden_order() -> None:
    ds = packed([3, 5, 2, 3, 5, 3], next_token=True, order="exchange", columns=["tokens"])
    starts = [0, 3, 8, 10, 13, 18]
    pieces = [
        [[(4, 1, 4), (2, 0, 1)], [(1, 4, 1), (5, 0, 3), (0, 0, 1)], [(2, 1, 1), (3, 0, 3), (1, 0, 1)],
         [(1, 0, 5)], [(0, 0, 3), (4, 0, 2)]],
        [[(4, 2, 3), (2, 0, 2)], [(2, 1, 1), (0, 0, 3), (1, 0, 1)], [(3, 1, 2), (4, 0, 3)], [(1, 0, 5)],
         [(1, 4, 1), (5, 0, 3), (3, 0, 1)]],
    ]  # fmt: skip
    for epoch, samples in enumerate(pieces):
        wanted = [
            [starts[row] + first + at for row, first, size in sample for at in range(size)]
            for sample in samples
        ]
        assert [sample["tokens"].tolist() for sample in ds.epoch(epoch)] == wanted


def test_labels_and_the_loss_within_documents() -> None:
    docs = sk.from_sequence(
        [{"tokens": [1, 2, 3], "loss_mask": [1, 1, 0]}, {"tokens": [4, 5], "loss_mask": [1, 1]}]
    )
    across = docs.windows(2, next_token=True, key="tokens")
    assert [each["tokens"].tolist() for each in across] == [[1, 2, 3], [3, 4, 5]]
    both = {
        "within": docs.pack(4, seed=2, labels="within", jobs=1)[0],
        "across": docs.pack(4, seed=2, labels="across", jobs=1, align=["loss_mask"])[0],
    }
    for sample in both.values():
        assert sorted({*sample["tokens"].tolist(), int(sample["labels"][-1])}) == [1, 2, 3, 4, 5]
        assert sample["tokens"][1:].tolist() == sample["labels"][:-1].tolist()
        assert {name: len(value) for name, value in sample.items()} == dict.fromkeys(sample, 4)
        assert sample["loss_mask"].dtype == np.uint8
    heads = [int(label in (1, 4)) for label in both["within"]["labels"].tolist()]
    assert both["within"]["loss_mask"].tolist() == [1 - head for head in heads]
    masked = [int(label == 3) for label in both["across"]["labels"].tolist()]
    assert both["across"]["loss_mask"].tolist() == [1 - each for each in masked]


def test_positions_in_the_document() -> None:
    documents = corpus([9, 4, 11])
    ds = sk.from_sequence(documents).pack(
        5, seed=1, method=sk.Packing(positions="document"), align=["mask"], columns=ALL, jobs=1
    )
    for sample in ds:
        check_sample(sample, documents, document=True)


@pytest.mark.parametrize("positions", ["piece", "document"])
def test_long_pieces(positions: Any) -> None:
    documents = corpus([300, 1000, 150, 700, 66_000, 20])
    ds = sk.from_sequence(documents)
    packed = ds.pack(
        500, seed=1, method=sk.Packing("best_fit", positions=positions), align=["mask"], columns=ALL, jobs=1
    )
    padded = [row for row, sample in enumerate(packed) if sample["cu_seqlens"][-1] < 500]
    for sample in packed._node.fetch(np.array([*padded, 0, len(packed) - 1])):
        check_sample(sample, documents, document=positions == "document")


def test_the_tokens_keep_their_type() -> None:
    ds = sk.from_sequence(corpus([5, 9, 2], np.uint16))
    assert {sample["tokens"].dtype for sample in ds.pack(4, seed=1, jobs=1)} == {np.dtype(np.uint16)}
    mixed = sk.from_sequence([*corpus([5], np.uint16), *corpus([5], np.int32)]).windows(3, jobs=1)
    assert {sample["tokens"].dtype for sample in mixed} == {np.dtype(np.int32)}


def test_aligned_arrays_of_floats(tmp_path: Path) -> None:
    records = [{"tokens": [1, 2, 3], "weight": [0.5, 1.0, 0.25]}, {"tokens": [4], "weight": [2.0]}]
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    for ds in (sk.from_sequence(records), sk.open(tmp_path)):
        windows = ds.windows(2, align=["weight"], jobs=1)
        assert [each["weight"].tolist() for each in windows] == [[0.5, 1.0], [0.25, 2.0]]
        assert same(windows[1], list(windows)[1])
        with pytest.raises(sk.errors.WrongType, match="integers in 'weight'"):
            ds.windows(2, key="weight", jobs=1)


def test_records_that_are_lists() -> None:
    ds = sk.from_sequence([[1, 2, 3], [], [4, 5]])
    assert [each["tokens"].tolist() for each in ds.windows(2, key=None)] == [[1, 2], [3, 4]]
    with pytest.raises(sk.errors.WrongType, match="key=None"):
        ds.pack(2, seed=1)


def test_only_the_columns_that_are_used_are_made() -> None:
    read: list[str] = []

    class Noting(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            read.append(name)
            return super().__getitem__(name)

    ds = sk.from_sequence([Noting(record) for record in corpus([5, 9, 2])])
    ds = ds.pack(4, seed=1, align=["mask"], jobs=1)
    whole = ds[0]
    read.clear()
    segments = ds.select_columns(["segment_ids"])
    assert same(segments[0], {"segment_ids": whole["segment_ids"]})
    assert same(segments._node.fetch(np.array([0]))[0], {"segment_ids": whole["segment_ids"]})
    assert read == []
    assert same(ds.select_columns(["mask"])[0], {"mask": whole["mask"]})
    assert {*read} == {"mask"}
    assert ds.columns == ["tokens", "segment_ids", "positions", "mask"]
    assert segments.columns == ["segment_ids"]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_makes_batches_of_arrays(workers: int) -> None:
    ds = packed([3, 5, 9, 1, 0, 4, 7, 2], columns=ALL)
    records = sk.Loader(ds, batch_size=3, collate=list, epochs=2)
    for batch, wanted in zip(sk.Loader(ds, batch_size=3, epochs=2, workers=workers), records, strict=True):
        assert same(batch, sk.collate(wanted))
        assert batch["tokens"].shape == (len(wanted), 4)
        assert [each.tolist() for each in batch["cu_seqlens"]] == [
            each["cu_seqlens"].tolist() for each in wanted
        ]


def test_batches_are_read_as_arrays() -> None:
    class Counted(list[Any]):
        """Counts how often it is asked for a record."""

        calls = 0

        def __getitem__(self, row: Any) -> Any:
            Counted.calls += 1
            return super().__getitem__(row)

    made = sk.from_sequence(Counted(corpus([4] * 40))).windows(8, columns=["tokens", "max_seqlen"], jobs=1)
    both = sk.mix([made, made], weights=[1, 1], seed=3)
    for ds in (
        made,
        made.shuffle(1),
        both,
        made.drop_columns(["max_seqlen"]),
        made.select_columns(["tokens"]),
    ):
        plan = ds._node.plan(np.arange(6))
        columns = plan.arrays()
        assert columns is not None
        records = plan.read()
        assert columns.keys() == records[0].keys()
        for name, column in columns.items():
            assert np.array_equal(column, [record[name] for record in records])
    assert both._node.plan(np.arange(6)).slice(2, 4).arrays() is not None
    assert made.map(lambda record: record)._node.plan(np.arange(2)).arrays() is None
    assert sk.mix([made, made.select_columns(["tokens"])], seed=3)._node.plan(np.arange(9)).arrays() is None
    assert made._node.plan(np.arange(0)).arrays() is None
    (batch,) = made.take(3).batches("numpy", size=3)
    assert batch["tokens"].shape == (3, 8)


def test_a_plan_reads_neighbours_of_one_document_once() -> None:
    rows: list[int] = []

    class Noting:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, row: int) -> dict[str, Any]:
            rows.append(row)
            return {"tokens": [row] * 50}

    ds = sk.from_sequence(Noting()).windows(5, jobs=1)
    rows.clear()
    assert len(list(ds)) == 20
    assert rows == [0, 1]


def test_a_record_that_has_changed() -> None:
    documents = corpus([5, 9, 2])
    ds = sk.from_sequence(documents).windows(4, jobs=1)
    documents[1] = corpus([3])[0]
    for read in (lambda: ds[2], lambda: list(ds)):
        with pytest.raises(sk.errors.BadValue, match=r"list> row 1: windows\(\) found 9 tokens .* fewer now"):
            read()
    documents[1] = {"text": "none"}
    for read in (lambda: ds[2], lambda: list(ds)):
        with pytest.raises(sk.errors.MissingColumn, match=r"list> row 1: windows\(\) needs"):
            read()


def test_holes_have_no_tokens() -> None:
    records = [{"tokens": [1, 2]}, sk.HOLE, {"tokens": [3, 4]}]
    assert [each["tokens"].tolist() for each in sk.from_sequence(records).windows(2)] == [[1, 2], [3, 4]]


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"seed": -1}, sk.errors.InvalidArgument, "seed"),
    ({"seed": None}, sk.errors.WrongType, "seed"),
    ({"length": 0}, sk.errors.InvalidArgument, "length must be at least 1"),
    (
        {"length": 2**40, "method": "best_fit"},
        sk.errors.InvalidArgument,
        "length must be at most 2,147,483,647",
    ),
    ({"length": 2.5}, sk.errors.WrongType, "length"),
    ({"length": 1000}, sk.errors.InvalidArgument, "3 documents have 16 tokens, and a sample takes 1,000"),
    ({"method": "worst_fit"}, sk.errors.InvalidArgument, "'concat' or 'best_fit'"),
    ({"order": "random"}, sk.errors.InvalidArgument, "'table', 'exchange' or 'megatron'"),
    ({"long": "cut"}, sk.errors.InvalidArgument, "'split', 'truncate' or 'drop'"),
    ({"long": "drop"}, sk.errors.InvalidArgument, "long= .*method='best_fit'"),
    ({"most": 3}, sk.errors.InvalidArgument, "most= .*method='best_fit'"),
    ({"method": "best_fit", "order": "table"}, sk.errors.InvalidArgument, "order= .*method='concat'"),
    (
        {"method": "best_fit", "fim": sk.Fim(0.5, 1, 2, 3)},
        sk.errors.InvalidArgument,
        "fim= .*method='concat'",
    ),
    (
        {"method": "best_fit", "long": "drop", "length": 1},
        sk.errors.InvalidArgument,
        "more than 1: take long='split'",
    ),
    ({"method": "best_fit", "most": 0}, sk.errors.InvalidArgument, "most must be at least 1"),
    ({"samples": 3}, sk.errors.InvalidArgument, "order='megatron'"),
    (
        {"order": "megatron", "samples": 2, "fim": sk.Fim(0.5, 1, 2, 3)},
        sk.errors.InvalidArgument,
        "Megatron's",
    ),
    ({"order": "megatron", "samples": 10**30}, sk.errors.InvalidArgument, "samples must be below"),
    (
        {"order": "megatron", "samples": 2, "seed": 2**32},
        sk.errors.InvalidArgument,
        "Megatron's order must be 0 to",
    ),
    ({"fim": 0.5}, sk.errors.WrongType, "sk.Fim"),
    ({"fim": sk.Fim(0.5, 1, 2, 3), "positions": "document"}, sk.errors.InvalidArgument, "positions='piece'"),
    ({"labels": True}, sk.errors.InvalidArgument, "'within', 'across'"),
    ({"positions": "token"}, sk.errors.InvalidArgument, "'piece' or 'document'"),
    ({"next_token": 1}, sk.errors.WrongType, "next_token"),
    ({"pad": "x"}, sk.errors.WrongType, "pad"),
    ({"pad": 2**63}, sk.errors.InvalidArgument, r"pad must be below 2\*\*63"),
    ({"key": 3}, sk.errors.WrongType, "key="),
    ({"key": "ids"}, sk.errors.MissingColumn, "'ids'"),
    ({"key": None, "align": ["mask"]}, sk.errors.InvalidArgument, "key=None"),
    ({"align": "mask"}, sk.errors.WrongType, "align="),
    ({"align": [3]}, sk.errors.WrongType, "align="),
    ({"align": ["mask", "mask"]}, sk.errors.InvalidArgument, "'mask' twice"),
    ({"align": ["positions"]}, sk.errors.InvalidArgument, "makes a column 'positions' itself"),
    ({"align": ["other"]}, sk.errors.MissingColumn, "'other'"),
    ({"columns": []}, sk.errors.InvalidArgument, "one name at least"),
    ({"columns": "tokens"}, sk.errors.WrongType, "columns="),
    ({"columns": ["text"]}, sk.errors.InvalidArgument, "no column 'text'"),
    ({"columns": ["labels"]}, sk.errors.InvalidArgument, "labels='within'"),
    ({"jobs": 0}, sk.errors.InvalidArgument, "jobs"),
]


@pytest.mark.parametrize(("options", "kind", "message"), WRONG)
def test_wrong_arguments(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    given = {"seed": 1, "length": 4, **options}
    with pytest.raises(kind, match=message):
        sk.from_sequence(corpus([5, 9, 2])).pack(given.pop("length"), **gathered(**given))


def test_wrong_children() -> None:
    ds = sk.from_sequence(corpus([5, 9, 2]))
    calls: list[Callable[[sk.Dataset], Any]] = [
        lambda some: some.windows(4),
        lambda some: some.pack(4, seed=1),
    ]
    for call in calls:
        with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle"):
            call(ds.shuffle(1))
        with pytest.raises(sk.errors.EndlessDataset, match="take"):
            call(sk.mix([ds, ds], stop="never", seed=1).epoch(0))
        with pytest.raises(sk.errors.InvalidArgument, match="0 documents have 0 tokens"):
            call(ds.take(0))


def test_the_fingerprint_is_of_the_arguments_and_the_lengths() -> None:
    lengths = [5, 9, 2, 5, 6]
    changed: list[dict[str, Any]] = [
        *({"seed": 8}, {"length": 5}, {"order": "exchange"}, {"next_token": True}, {"labels": "within"}),
        *(
            {"labels": "across"},
            {"align": []},
            {"positions": "document"},
            {"pad": 1},
            {"columns": ["tokens"]},
        ),
        {"lengths": [9, 5, 2, 5, 6]},
    ]
    first = packed(lengths)
    found = [packed(options.pop("lengths", lengths), **options).fingerprint for options in map(dict, changed)]
    assert len({first.fingerprint, *found}) == len(changed) + 1
    assert packed(lengths, order="table").fingerprint == first.fingerprint == packed(lengths).fingerprint
    assert "order='table'" in first.explain()
    assert "tail" in first.explain()
    assert repr(packed(lengths, order="table")) == (
        "<Dataset, 6 records: from_sequence(<builtins.list of 5>).pack(4, seed=7, align=('mask',))>"
    )
    assert repr(sk.from_sequence(corpus([9])).windows(4, next_token=True, jobs=1)) == (
        "<Dataset, 2 records: from_sequence(<builtins.list of 1>).windows(4, next_token=True)>"
    )


def test_other_nodes_over_packed_samples() -> None:
    ds = packed([5, 9, 2, 5, 6, 1, 1], columns=["tokens"])
    n, flat = len(ds), [ds[row]["tokens"].tolist() for row in range(len(ds))]
    assert [each["tokens"].tolist() for each in ds[1:4]] == flat[1:4]
    assert [each["tokens"].tolist() for each in ds[::-1]] == flat[::-1]
    assert ds[-1]["tokens"].tolist() == flat[-1]
    assert [each["tokens"].tolist() for each in ds[[2, 0]]] == [flat[2], flat[0]]
    assert [each["tokens"].tolist() for each in ds.shard(1, of=3)] == flat[1::3]
    assert sorted(each["tokens"].tolist() for each in ds.shuffle(3)) == sorted(flat)
    assert [pair[0]["tokens"].tolist() for pair in sk.zip([ds, ds])] == flat
    assert [each["tokens"].tolist() for each in ds.stream(epochs=1)] == flat
    assert [int(total) for total in ds.map(lambda each: each["tokens"].sum())] == [sum(each) for each in flat]
    windows = sk.from_sequence(corpus([5, 9, 2, 6])).windows(4, jobs=1)
    kept = windows.filter(lambda each: each["tokens"][0] % 8 == 0, jobs=1)
    assert [int(each["tokens"][0]) for each in kept] == [0, 8, 16]
    parts = windows.split({"train": 0.8, "test": 0.2}, seed=1)
    assert sum(map(len, parts.values())) == len(windows)
    assert windows._node.steady
    assert not ds._node.steady
    assert (
        pickle.loads(pickle.dumps(ds.epoch(1)))[n - 1]["tokens"].tolist()
        == ds.epoch(1)[n - 1]["tokens"].tolist()
    )
    with pytest.raises(sk.errors.InvalidArgument, match="made of several"):
        ds._node.plan(np.arange(2)).origins()


def test_windows_lie_in_the_blocks_of_their_documents() -> None:
    ds = sk.from_sequence(corpus([6] * 2500)).windows(8, jobs=1)
    assert ds._node.blocks.tolist() == [0, 768, 1536, 1875]
    local = ds.shuffle(3, window=1)
    assert sorted(int(each["tokens"][0]) for each in local) == list(range(0, 15000, 8))


def test_token_files_are_packed_from_their_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [3, 5, 0, 2, 9, 1, 7]
    tokens = dataset_of(simple_source(tmp_path, lengths))
    plain = sk.from_sequence([{"tokens": record["tokens"]} for record in tokens])
    options: dict[str, Any] = {
        "seed": 4,
        "next_token": True,
        "columns": [name for name in ALL if name != "mask"],
    }
    changes: list[Callable[[sk.Dataset], sk.Dataset]] = [
        lambda ds: ds,
        lambda ds: ds[::-1] + ds[1:3],
        lambda ds: ds.filter(_has_three, jobs=1),
        lambda ds: ds.select([4, 0, 4, 1]),
        lambda ds: ds.shuffle(3, fixed=True).shard(0, of=2),
        lambda ds: ds.split({"a": 0.6, "b": 0.4}, seed=1)["a"],
    ]
    for change in changes:
        child, model = change(tokens), change(plain)
        ds, wanted = child.pack(4, **options), model.pack(4, jobs=1, **options)
        assert same(list(ds), list(wanted))
        assert same([ds[row] for row in range(len(ds))], list(wanted))
        assert ds[0]["tokens"].dtype == np.uint16
    ds = tokens.pack(4, **options)
    for row, places in enumerate(ds.locate(list(range(len(ds))))):
        sample = ds[row]
        data = b"".join(Path(each.path).read_bytes()[each.offset :][: each.length] for each in places)
        assert data == sample["tokens"].astype("<u2").tobytes()
        assert all(row in ds.find(each.path, each.row) for each in places)
    assert "lengths=" not in ds.explain()
    plan = ds._node.plan(np.arange(3))
    assert plan.bytes == 3 * 5 * 2
    assert ds.select_columns(["positions"])._node.plan(np.arange(3)).bytes == 0
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(DiskActivity, "may_wait", property(lambda _: True))
    monkeypatch.setattr(MappedFile, "advise", lambda _, *span: seen.append(span))
    plan.advise()
    whole = [(place.offset, place.offset + place.length) for places in plan.locate() for place in places]
    assert all(any(a <= first and last <= b for a, b in seen) for first, last in whole)
    with pytest.raises(sk.errors.MissingColumn, match="'mask'"):
        tokens.pack(4, seed=1, align=["mask"])
    with pytest.raises(sk.errors.InvalidArgument, match="pad=70000 does not fit uint16"):
        tokens.pack(4, seed=1, method=sk.Packing(pad=70000))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=20), st.integers(1, 9), st.sampled_from([0, 0.5, 1]))
@settings(max_examples=10)
@pytest.mark.parametrize("order", ["table", "exchange"])
def test_rearranged_documents_keep_their_tokens(
    order: Any, lengths: list[int], length: int, rate: float
) -> None:
    documents = [{**record, "tokens": record["tokens"] + 10} for record in corpus(lengths)]
    fim = sk.Fim(rate=rate, prefix=1, suffix=2, middle=3)
    marked = sum((row + 1) * int(2 * rate) // 2 - row * int(2 * rate) // 2 for row in range(len(lengths)))
    total = sum(lengths) + 3 * marked
    if total < length:
        return
    ds = sk.from_sequence(documents).pack(
        length, seed=3, method=sk.Packing(order=order), fim=fim, align=["mask"], columns=ALL, jobs=1
    )
    assert len(ds) == total // length
    for epoch in range(2):
        samples = list(ds.epoch(epoch))
        assert all(same(ds.epoch(epoch)[row], sample) for row, sample in enumerate(samples))
        tokens = Counter(token for sample in samples for token in sample["tokens"].tolist())
        own = Counter({token: count for token, count in tokens.items() if token >= 10})
        assert not own or max(own.values()) == 1
        assert total - tokens.total() < length
        assert all(tokens[sentinel] <= marked for sentinel in (1, 2, 3))
        for sample in samples:
            for token, mask in zip(sample["tokens"].tolist(), sample["mask"].tolist(), strict=True):
                assert mask == ((token - 10) % 3 if token >= 10 else 0)
            sizes = np.diff(sample["cu_seqlens"])
            assert np.array_equal(sample["positions"], np.concatenate([np.arange(size) for size in sizes]))
            assert np.array_equal(sample["segment_ids"], np.repeat(np.arange(1, sizes.size + 1), sizes))
            segments = np.split(sample["tokens"], sample["cu_seqlens"][1:-1])
            assert all(len({*_rows(documents, segment)}) <= 1 for segment in segments)
        for row, record in enumerate(documents):
            here = [i for i, sample in enumerate(samples) if {*record["tokens"]} & {*sample["tokens"]}]
            found = [position - epoch * len(ds) for position in ds.find(LIST, row, epoch=epoch)]
            assert {*here} <= {*found}
    places = ds.locate(0)
    assert {place.row for place in places} == {*_rows(documents, ds[0]["tokens"])}


def _rows(documents: list[dict[str, Any]], tokens: Any) -> list[int]:
    """Return the rows of the documents of some tokens, without those of sentinels."""
    ends = np.cumsum([record["tokens"].size for record in documents]) + 10
    return [int(row) for row in np.searchsorted(ends, tokens[tokens >= 10], side="right")]


def _has_three(record: dict[str, Any]) -> bool:
    return len(record["tokens"]) > 2


def test_the_description_is_the_golden_one() -> None:
    child = {"kind": "sequence", "type": "builtins.list", "length": 2}
    docs = sk.from_sequence([{"tokens": [1, 2, 3]}, {"tokens": [4, 5]}])
    lengths = "xxh3:7ca328b4f8fa4b5f"
    columns = ["tokens", "segment_ids", "positions"]
    packed = {"kind": "pack", "length": 2, "extra": 0, "method": "concat", "seed": 7, "order": "table"}
    fim = {"rate": 0.5, "prefix": 1, "suffix": 2, "middle": 3, "spm": 0.5, "end_tokens": 0}
    assert docs.pack(2, seed=7, jobs=1)._node.describe(None) == {
        **packed, "columns": columns, "count": 2, "lengths": lengths, "of": [child]
    }  # fmt: skip
    samples = docs.pack(2, seed=7, fim=sk.Fim(0.5, 1, 2, 3), method=sk.Packing(pad=5), jobs=1)
    assert samples._node.describe(None) == {
        **packed, "fim": fim, "columns": columns, "pad": 5, "count": 4, "lengths": lengths, "of": [child]
    }  # fmt: skip
    assert docs.windows(2, next_token=True, jobs=1)._node.describe(None) == {
        "kind": "windows", "length": 2, "extra": 1, "columns": ["tokens"], "next_token": True, "count": 2,
        "lengths": lengths, "of": [child],
    }  # fmt: skip


def test_samples_of_one_epoch_are_chosen_by_content() -> None:
    ds = packed([5, 9, 2])
    with pytest.raises(sk.errors.InvalidArgument, match=r"put it before shuffle, pack, .* with epoch\(e\)"):
        ds.filter(bool)
    chosen = ds.epoch(1).filter(lambda sample: sample["tokens"][0] % 2 == 0, version=1)
    assert [list(each["tokens"]) for each in chosen] == [
        list(each["tokens"]) for each in ds.epoch(1) if each["tokens"][0] % 2 == 0
    ]


def test_the_summary_of_samples_counts_no_files() -> None:
    assert "\nrows: 4\n" in str(packed([5, 9, 2]).info())


def test_an_order_that_was_asked_for_is_shown() -> None:
    asked = packed([5, 9, 2], order="exchange")
    assert "order='exchange'" in repr(asked)
    assert "order=" not in repr(packed([5, 9, 2]))
    assert "order=" not in repr(packed([5, 9, 2], method="best_fit"))


def test_too_little_memory_for_megatrons_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(megatron_order, "build_indexes", no_memory)
    with pytest.raises(sk.errors.InvalidArgument, match=r"not enough memory .* take fewer samples"):
        packed([5, 9, 2], order="megatron", samples=9)


def test_megatrons_order() -> None:
    ds = packed([3, 5, 2, 4, 6], order="megatron", samples=9, seed=1234, next_token=True, columns=["tokens"])
    assert ds._node.steady
    assert len(ds) >= 9
    assert all(len(sample["tokens"]) == 5 for sample in ds)
    assert all(row in ds.find(LIST, place.row) for row in range(9) for place in ds.locate(row))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"length": 4', '"length": 0'),
        ('"extra": 0', '"extra": -1'),
        ('"seed": 7', '"seed": -1'),
        ('"method": "concat"', '"method": "other"'),
        ('"most": null', '"most": 0'),
        ('"positions": "piece"', '"positions": 3'),
        ('"fim": null', '"fim": {"rate": 2, "prefix": 1, "suffix": 2, "middle": 3}'),
        ('"dtypes": [["tokens", "int64"]', '"dtypes": [["tokens", 3]'),
    ],
)
def test_a_damaged_pipeline_file_is_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "p.json"
    packed([5, 9, 2]).save(path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(sk.errors.CorruptState, match=r"nodes\[1\] \(pack\)"):
        sk.load_pipeline(path, sequences={"builtins.list": corpus([5, 9, 2])})


@pytest.mark.parametrize(
    "arguments",
    [
        {"method": "best_fit"},
        {"method": sk.Packing("best_fit", most=2, long="drop", pad=9)},
        {"method": sk.Packing(order="exchange", positions="document"), "labels": "within"},
        {"fim": sk.Fim(0.5, 1, 2, 3), "next_token": True},
    ],
)
def test_what_is_shown_can_be_typed(arguments: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(f'{{"ids": {list(range(1, 2 + row % 7))}}}\n' for row in range(40)))
    samples = sk.open(path).pack(8, seed=7, key="ids", **arguments)
    call = repr(samples).partition(": ")[2].removesuffix(">")
    again = eval(call, {"open": sk.open, "sk": sk, "Fim": sk.Fim})
    assert again.fingerprint == samples.fingerprint
    samples.save(tmp_path / "p.json")
    assert sk.load_pipeline(tmp_path / "p.json").fingerprint == samples.fingerprint
