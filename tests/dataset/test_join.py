"""Two datasets by a key: the pairs of a model of two loops, whatever the keys and however they are hashed."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow

import seekable as sk
from seekable.nodes.join import Matching, RightKeys, right_keys
from seekable.parallel.map_ranges import execution_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Record = dict[str, Any]
keys = st.none() | st.integers(-2, 3) | st.sampled_from(["1", "2", "x", ""])


def records(names: str) -> st.SearchStrategy[list[Record]]:
    """Return lists of records with a key of two columns, either of which may be missing."""
    record = st.fixed_dictionaries({}, optional={"k": keys, "l": st.integers(0, 1)})
    numbered = st.lists(record, max_size=12)
    return numbered.map(lambda some: [{**one, names: row} for row, one in enumerate(some)])


def pairs(
    left: list[Record], right: list[Record], on: list[str], how: str, duplicates: str
) -> list[tuple[int, int]] | None:
    """Return the rows that go together; None if a key is one of several records, and that is an error."""
    found = []
    for i, one in enumerate(left):
        key = [one.get(name) for name in on]
        same = [
            j
            for j, other in enumerate(right)
            if None not in key
            and [(type(part), part) for part in key] == [(type(other.get(n)), other.get(n)) for n in on]
        ]
        if len(same) > 1 and duplicates == "error":
            return None
        if duplicates == "first":
            same = same[:1]
        if not same and how == "left":
            same = [-1]
        found += [(i, j) for j in same]
    return found


@given(
    left=records("left"),
    right=records("right"),
    on=st.sampled_from([["k"], ["k", "l"]]),
    how=st.sampled_from(["inner", "left"]),
    duplicates=st.sampled_from(["error", "first", "all"]),
)
def test_the_records_are_the_models(
    left: list[Record],
    right: list[Record],
    on: list[str],
    how: Literal["inner", "left"],
    duplicates: Literal["error", "first", "all"],
) -> None:
    a, b = sk.from_sequence(left, version="a"), sk.from_sequence(right, version="b")
    wanted = pairs(left, right, on, how, duplicates)
    if wanted is None:
        with pytest.raises(
            sk.errors.AmbiguousKey, match=r"<builtins.list a> row \d+: \d+ records of the right"
        ):
            sk.join(a, b, on=on, how=how, duplicates=duplicates, suffix="_b", jobs=1)
        return
    joined = sk.join(a, b, on=on, how=how, duplicates=duplicates, suffix="_b", jobs=1)
    columns = {name: None for record in right for name in record if name not in on}
    model = []
    for i, j in wanted:
        others = columns if j < 0 else {n: v for n, v in right[j].items() if n not in on}
        model.append({**left[i], **{f"{n}_b" if n in left[i] else n: v for n, v in others.items()}})
    assert list(joined) == model
    assert [joined[row] for row in range(len(model))] == model
    assert flow(joined, 3 * len(model)) == model * 3
    assert [[place.row for place in places] for places in joined.locate(list(range(len(model))))] == [
        [i] if j < 0 else [i, j] for i, j in wanted
    ]
    for row in range(len(left)):
        found = [len(model) + p for p, (i, _) in enumerate(wanted) if i == row]
        assert joined.find("<builtins.list a>", row, epoch=1) == found
    for row in range(len(right)):
        found = [p for p, (_, j) in enumerate(wanted) if j == row]
        assert joined.find("<builtins.list b>", row) == found
    assert list(pickle.loads(pickle.dumps(joined))) == model
    only = frozenset(["right", "k"])
    narrowed = sk.Dataset(joined._node.narrowed(only))
    assert [{n: v for n, v in record.items() if n in only} for record in narrowed.shuffle(seed=3)] == [
        {n: v for n, v in record.items() if n in only} for record in joined.shuffle(seed=3)
    ]
    assert joined._node.narrowed(only).fingerprint == joined.fingerprint


def test_equal_hashes_of_other_keys_do_not_match() -> None:
    """All keys are given one hash, as if xxh3 had failed: the keys themselves are compared."""
    right = sk.from_sequence([{"k": value} for value in ("x", 1, "1", None, 2)])
    left = sk.from_sequence([{"k": value} for value in (1, "1", "x", 3, None)])
    using = execution_options(1, None, at_once=True)
    honest = right_keys(right._node, ("k",), 5, using=using, columns=False)
    assert honest.rows.size == 4
    for value in (1, "1", "x", 3):
        one = sk.from_sequence([{"k": value}])
        hashed = right_keys(one._node, ("k",), 1, using=using, columns=False).hashes[0]
        forged = RightKeys(np.full(4, hashed), np.array([0, 1, 2, 4]), ())
        job = Matching(one._node, right._node, ("k",), forged, "inner", "error", must_match=False)
        rows, matched = job(0, 1)
        wanted = [
            row for row in range(5) if right[row]["k"] == value and type(right[row]["k"]) is type(value)
        ]
        assert matched.tolist() == wanted
        assert rows.tolist() == [0] * len(wanted)
    assert list(sk.join(left, right, on="k")) == [{"k": 1}, {"k": "1"}, {"k": "x"}]


def test_files_are_joined_over_many_processes(tmp_path: Path) -> None:
    texts = [{"id": f"r{row}", "text": "x" * row} for row in range(500)]
    langs = [{"id": f"r{row}", "lang": "de" if row % 2 else "fr"} for row in range(700, -1, -3)]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(record) + "\n" for record in texts))
    (tmp_path / "langs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in langs))
    left, right = sk.open(tmp_path / "texts.jsonl"), sk.open(tmp_path / "langs.jsonl")
    told = {record["id"]: record["lang"] for record in langs}
    wanted = [{**record, "lang": told[record["id"]]} for record in texts if record["id"] in told]
    apart = sk.join(left, right, on="id", jobs=2)
    assert list(apart) == wanted
    assert apart.fingerprint == sk.join(left, right, on="id", jobs=1).fingerprint
    whole = sk.join(left, right, on="id", how="left").shuffle(seed=1)
    assert sorted(whole, key=lambda record: len(record["text"])) == [
        {**record, "lang": told.get(record["id"])} for record in texts
    ]
    assert whole._node.plan(np.arange(10)).paths == {
        str(tmp_path / "texts.jsonl"),
        str(tmp_path / "langs.jsonl"),
    }


def test_holes_of_the_left_stay_and_those_of_the_right_match_nothing() -> None:
    left = sk.from_sequence([{"k": 1}, sk.HOLE, {"k": 2}])
    right = sk.from_sequence([sk.HOLE, {"k": 1, "v": 5}])
    assert list(sk.join(left, right, on="k")) == [{"k": 1, "v": 5}, sk.HOLE]
    assert list(sk.join(left, right, on="k", how="left")) == [
        {"k": 1, "v": 5},
        sk.HOLE,
        {"k": 2, "v": None},
    ]
    assert len(sk.join(left.take(2), right, on="k", missing="error")) == 2


@pytest.mark.parametrize(
    ("left", "right", "arguments", "error", "why"),
    [
        (
            [{"k": 1, "v": 1}],
            [{"k": 1, "v": 2}],
            {},
            sk.errors.BadValue,
            "row 0: both sides .* a column 'v': say suf",
        ),
        (
            [{"k": 1, "v": 1, "v_b": 1}],
            [{"k": 1, "v": 2}],
            {"suffix": "_b"},
            sk.errors.BadValue,
            "a column 'v_b'",
        ),
        (
            [{"k": 1}, {"k": 2}],
            [{"k": 1}],
            {"missing": "error"},
            sk.errors.KeyNotFound,
            "list> row 1: .* 'k' 2",
        ),
        (
            [{"k": 1}, {"v": 2}],
            [{"k": 1}],
            {"missing": "error"},
            sk.errors.KeyNotFound,
            "list> row 1 has no 'k'",
        ),
        ([{"k": 1.5}], [{"k": 1}], {}, sk.errors.BadKey, "row 0: the column 'k' has 1.5 of type float"),
        ([{"k": 1}], [{"k": [1]}], {}, sk.errors.BadKey, "row 0: the column 'k' has .* of type list"),
        ([{"k": True}], [{"k": 1}], {}, sk.errors.BadKey, "has True of type bool"),
        (["k"], [{"k": 1}], {}, sk.errors.WrongType, r"records that are dicts \(got a str\)"),
        (
            [{"k": 1}],
            [{"k": 1}, {"k": 1}],
            {},
            sk.errors.AmbiguousKey,
            "2 records .* 'k' 1: .* row 0, .* row 1. Say",
        ),
    ],
    ids=itertools.count(),
)
def test_what_does_not_go_together_is_named(
    left: list[Any], right: list[Any], arguments: dict[str, Any], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        list(sk.join(sk.from_sequence(left), sk.from_sequence(right), on="k", **arguments))


join: Any = sk.join
"""Without its types, for what a user might try."""


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (lambda ds: join(ds, [1], on="k"), sk.errors.WrongType, "takes two Datasets"),
        (lambda ds: join(ds, ds, on=[]), sk.errors.InvalidArgument, "at least one column"),
        (lambda ds: join(ds, ds, on=["k", "k"]), sk.errors.InvalidArgument, "each column once"),
        (lambda ds: join(ds, ds, on=3), sk.errors.WrongType, "list of names"),
        (lambda ds: join(ds, ds, on="k", how="outer"), sk.errors.InvalidArgument, "'inner', 'left'"),
        (lambda ds: join(ds, ds, on="k", duplicates="last"), sk.errors.InvalidArgument, "'first', 'all'"),
        (lambda ds: join(ds, ds, on="k", missing="x"), sk.errors.InvalidArgument, "'allow', 'error'"),
        (lambda ds: join(ds, ds, on="k", suffix=""), sk.errors.InvalidArgument, "not empty"),
        (lambda ds: join(ds.shuffle(seed=1), ds, on="k"), sk.errors.InvalidArgument, "put it before shuffle"),
        (lambda ds: join(ds, ds.shuffle(seed=1), on="k"), sk.errors.InvalidArgument, "put it before shuffle"),
        (lambda ds: join(ds, endless(), on="k"), sk.errors.EndlessDataset, "take"),
    ],
    ids=itertools.count(),
)
def test_bad_arguments_are_named(make: Callable[[Any], Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        make(sk.from_sequence([{"k": 1}]))


def test_numbers_of_numpy_are_keys() -> None:
    left = sk.from_sequence([{"k": np.int32(7), "a": 1}])
    assert list(sk.join(left, sk.from_sequence([{"k": 7, "b": 2}]), on="k")) == [{"k": 7, "a": 1, "b": 2}]


def test_fingerprints_tell_joins_apart() -> None:
    a = sk.from_sequence([{"k": row, "x": row} for row in range(9)], version="a")
    b = sk.from_sequence([{"k": row // 2, "y": row} for row in range(9)], version="b")
    made = [
        sk.join(a, b, on="k", duplicates="first"),
        sk.join(a, b, on="k", duplicates="all"),
        sk.join(a, b, on="k", duplicates="first", how="left"),
        sk.join(a, b, on="k", duplicates="first", suffix="_b"),
        sk.join(b, a, on="k"),
    ]
    assert len({each.fingerprint for each in made}) == len(made)
    assert "join(from_sequence(" in repr(made[0])
    assert ", on='k', how='inner')" in repr(made[0])
