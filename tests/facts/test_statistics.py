"""Statistics of samples against a model that looks at every record by itself."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import seekable as sk
from seekable.errors import EndlessDataset, InvalidArgument
from seekable.viewer.facts.histogram import lengths_in_bins, numbers_in_bins
from seekable.viewer.facts.key_paths import path_of, path_text, values_at
from seekable.viewer.facts.key_statistics import Statistics, statistics

if TYPE_CHECKING:
    from pathlib import Path

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("x" * 300)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab.["), inner, max_size=3),
    max_leaves=8,
)
TYPES = {"NoneType": "null"}


def all_of(node: Any, n: int = 1000) -> Statistics:
    *_, found = statistics(node, n=n)
    return found


@given(st.lists(VALUES, max_size=12))
def test_facts_are_those_of_a_model(records: list[Any]) -> None:
    found = all_of(sk.from_sequence(records)._node)
    assert (found.done, found.of, found.size) == (len(records),) * 3
    json.dumps(found.document(), allow_nan=False).encode()
    for key in found.keys:
        values = [value for record in records for value in values_at(record, key.path)]
        assert key.present.count == len(values)
        names = Counter(TYPES.get(type(value).__name__, type(value).__name__) for value in values)
        assert {name: share.count for name, share in key.types} == names
        assert key.empty.count == sum(value in ("", [], {}) for value in values if not _is_nan(value))
        numbers = [value for value in values if type(value) in (int, float) and _is_finite(value)]
        usual = Counter("number" if name in ("int", "float") else name for name in names.elements())
        del usual["null"]
        if numbers and [name for name, count in usual.items() if count == max(usual.values())] == ["number"]:
            assert key.numbers is not None
            assert (key.numbers.least, key.numbers.most) == (float(min(numbers)), float(max(numbers)))
        elif usual["number"] < max(usual.values(), default=0) or not numbers:
            assert key.numbers is None
        for top in key.top:
            equal = [value for value in values if type(value) is type(top.value) and value == top.value]
            assert top.share.count == len(equal)
        if None not in key.path:
            assert key.present.of == len(records)
    paths = {key.path for key in found.keys}
    for record in records:
        if isinstance(record, dict):
            assert {(name,) for name in record} <= paths


def test_a_key_is_described_by_its_most_frequent_type() -> None:
    ids = [*range(997), "by hand", "x" * 30, None]
    *_, found = statistics(
        sk.from_sequence([{"id": each, "set": "abc"[0 if each is None else 1]} for each in ids])._node, n=1000
    )
    key = found.keys[1]
    assert key.lengths is None
    assert key.numbers is not None
    assert (key.numbers.least, key.numbers.most) == (0.0, 996.0)
    assert not key.is_label
    label = found.keys[2]
    assert label.is_label
    assert label.lengths is not None


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def test_a_sample_finds_what_every_record_has_and_gives_bounds(tmp_path: Path) -> None:
    rows = range(3000)
    lines = [json.dumps({"id": row, "lang": ("en", "de")[row % 2]}) for row in rows]
    lines[7::100] = ["{broken"] * 30
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    node = sk.open(str(tmp_path / "a.jsonl"))._node
    found = all_of(node, n=1000)
    assert found.made_of == "from 1,000 of 3,000 rows, seed 0"
    assert found.corrupt.low <= 0.01 <= found.corrupt.high
    assert all(row % 100 == 7 for row in found.corrupt_rows)
    of_lang = next(key for key in found.keys if key.path == ("lang",))
    assert sorted(top.value for top in of_lang.top) == ["de", "en"]
    assert of_lang.top[0].share.low <= 0.5 <= of_lang.top[0].share.high
    assert of_lang.present.of == 1000 - found.corrupt.count
    whole = all_of(node, n=9999)
    assert (whole.corrupt.count, whole.corrupt.exact) == (30, True)
    assert len(whole.corrupt_rows) == 20


def test_elements_of_lists_have_facts_of_their_own() -> None:
    record = {"messages": [{"role": "user", "text": "a"}, {"role": "bot"}, "odd"]}
    found = all_of(sk.from_sequence([record, record])._node)
    facts = {path_text(key.path): key.present for key in found.keys}
    assert (facts["messages[].role"].count, facts["messages[].role"].of) == (4, 4)
    assert (facts["messages[].text"].count, facts["messages[].text"].of) == (2, 4)


@pytest.mark.parametrize(
    "record",
    [
        {str(key): 1 for key in range(10_000)},
        {"a": list(range(100_000))},
        {"a": "x" * 1_000_000, "\ud800": float("nan"), "b": 10**400},
        np.arange(6).reshape(2, 3),
        b"\0\xff",
    ],
    ids=["keys", "elements", "odd", "array", "bytes"],
)
def test_hostile_records_have_facts_of_bounded_size(record: Any) -> None:
    found = all_of(sk.from_sequence([record] * 3)._node)
    assert len(found.keys) <= 501
    document = found.document()
    assert len(json.dumps(document, allow_nan=False)) < 2_000_000
    assert found.left_out == (9500 if isinstance(record, dict) and len(record) == 10_000 else 0)


def test_no_rows_have_no_facts_and_endless_data_is_refused() -> None:
    assert all_of(sk.from_sequence([])._node).document()["done"] == 0
    endless = sk.mix([sk.from_sequence([1])], weights=[1], seed=0, stop="never")
    with pytest.raises(EndlessDataset):
        next(statistics(endless._node, n=1))


@given(st.lists(st.none() | st.text(alphabet="ab0.[]\\"), max_size=5))
@example(["", None])
@example([None])
@example([""])
def test_paths_are_read_back_as_they_are_written(parts: list[str | None]) -> None:
    assert path_of(path_text(tuple(parts))) == tuple(parts)


@pytest.mark.parametrize("text", ["", ".a", "a.", "a[0]", "a]b[", "a\\x", "[]a", "a["])
def test_texts_that_are_no_paths_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="a key is written as"):
        path_of(text)


@given(st.lists(st.integers(0, 10**12), max_size=50))
def test_bins_of_lengths_hold_each_length_once(lengths: list[int]) -> None:
    found = lengths_in_bins(np.array(lengths, np.int64))
    if not lengths:
        assert found is None
        return
    assert found is not None
    pairs = zip(found.edges[:-1], found.edges[1:], strict=True)
    assert list(found.counts) == [sum(low <= each < high for each in lengths) for low, high in pairs]
    assert sum(found.counts) == len(lengths)


@given(st.lists(st.floats(), max_size=30))
def test_bins_of_numbers_hold_each_finite_number_once(numbers: list[float]) -> None:
    found = numbers_in_bins(np.array(numbers, np.float64))
    finite = sum(math.isfinite(number) for number in numbers)
    assert (0 if found is None else sum(found.counts)) == finite
