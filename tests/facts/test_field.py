"""The values of one key against a model that looks at every record by itself."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.viewer.facts.key_paths import path_of, values_at
from seekable.viewer.facts.key_statistics import EMPTY, MISSING, FieldFacts, field

if TYPE_CHECKING:
    from pathlib import Path

VALUES = st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=3), st.lists(st.text(max_size=2)))
RECORDS = st.one_of(
    st.fixed_dictionaries({}, optional={"a": VALUES, "b": st.fixed_dictionaries({}, optional={"c": VALUES})}),
    st.just("text"),
)


def last(work: Any) -> FieldFacts:
    *_, found = work
    assert isinstance(found, FieldFacts)
    return found


@given(st.lists(RECORDS, max_size=10), st.sampled_from(["a", "b.c", "a[]", "[record]"]))
def test_facts_are_those_of_a_model(records: list[Any], key: str) -> None:
    found = last(field(sk.from_sequence(records)._node, path_of(key), n=100))
    values = [values_at(record, path_of(key)) for record in records]
    assert (found.done, found.key.present.count) == (len(records), sum(map(bool, values)))
    names = {type(None): "null"}
    kinds = Counter(names.get(type(each), type(each).__name__) for some in values for each in some)
    assert {name: share.count for name, share in found.key.types} == kinds
    assert found.rows.get(MISSING, ()) == tuple(row for row, some in enumerate(values) if not some)
    empty = tuple(row for row, some in enumerate(values) if any(each in ("", [], {}) for each in some))
    assert found.rows.get(EMPTY, ()) == empty
    for name in kinds:
        rows = [
            row
            for row, some in enumerate(values)
            for each in some
            if names.get(type(each), type(each).__name__) == name
        ]
        assert found.rows[name] == tuple(dict.fromkeys(rows))
    flat = [each for some in values for each in some]
    most = max((count for name, count in kinds.items() if name not in ("null", "int", "float")), default=0)
    lengths = sum(found.lengths.counts if found.lengths else ())
    assert lengths in {0, *(kinds[kind] for kind in ("str", "list") if kinds[kind] == most)}
    if flat and all(isinstance(each, str) for each in flat):
        assert lengths == len(flat)
    json.dumps(found.document(), allow_nan=False).encode()


def test_a_larger_sample_goes_on_from_a_smaller_one(tmp_path: Path) -> None:
    lines = [json.dumps({"id": row} if row % 3 else {"id": str(row)}) for row in range(3000)]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, "{"]))
    node = sk.open(tmp_path / "a.jsonl")._node
    small, whole = last(field(node, ("id",), n=500)), last(field(node, ("id",), n=5000))
    assert small.made_of == "from 500 of 3,001 rows, seed 0"
    assert (whole.done, whole.corrupt.count, whole.key.present.in_words()) == (3001, 1, "100 %")
    assert {name: share.count for name, share in whole.key.types} == {"int": 2000, "str": 1000}
    assert (len(whole.rows["int"]), MISSING in whole.rows) == (20, False)
    assert whole.numbers is not None
    assert sum(whole.numbers.counts) == 2000


def test_no_rows() -> None:
    found = last(field(sk.from_sequence([])._node, ("id",), n=5))
    assert (found.done, found.key.types, found.rows, found.lengths) == (0, (), {}, None)
