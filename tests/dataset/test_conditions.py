"""Conditions on columns mean what pyarrow's filters mean, and bounds rule out nothing that passes."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.nodes.conditions import Bounds, Condition, Where, checked_where, passing

COMPARED = ("==", "!=", "<", "<=", ">", ">=")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3),
    "f": st.floats(-2, 2, width=16, allow_nan=False),
    "s": st.text("ab", max_size=2),
    "d": st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 4)),
}
TYPES = {"i": pa.int64(), "f": pa.float64(), "s": pa.string(), "d": pa.date32()}

rows = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=20
)


@st.composite
def conditions(draw: st.DrawFn) -> tuple[Any, ...]:
    column = draw(st.sampled_from(sorted(VALUES)))
    operator = draw(st.sampled_from([*COMPARED, "in", "not in", "is null", "is not null"]))
    if operator.startswith("is"):
        return column, operator
    if "in" in operator:
        return column, operator, draw(st.lists(VALUES[column], max_size=3))
    return column, operator, draw(VALUES[column])


wheres = st.lists(st.lists(conditions(), min_size=1, max_size=3), min_size=1, max_size=3)


def of_pyarrow(where: list[list[tuple[Any, ...]]]) -> Any:
    """Return the expression, with what pyarrow's lists of tuples cannot say, and without null in `not in`."""
    whole = None
    for some in where:
        every = None
        for column, operator, *value in some:
            field = pa.compute.field(column)
            if operator == "is null":
                one = field.is_null()
            elif operator == "is not null":
                one = field.is_valid()
            elif "in" in operator:
                among = pa.array(value[0], type=TYPES[column])
                one = (field.isin(among) if operator == "in" else ~field.isin(among)) & field.is_valid()
            else:
                one = pq.filters_to_expression([(column, operator, value[0])])
            every = one if every is None else every & one
        whole = every if whole is None else whole | every
    return whole


@given(records=rows, where=wheres)
def test_the_records_that_pass_are_pyarrows(records: list[dict[str, Any]], where: list[Any]) -> None:
    numbered = [{**record, "row": row} for row, record in enumerate(records)]
    table = pa.Table.from_pylist(numbered, schema=pa.schema({**TYPES, "row": pa.int64()}))
    wanted = table.filter(of_pyarrow(where))["row"].to_pylist()
    conditions = checked_where(where)
    assert [row for row, record in enumerate(records) if conditions.passes(record)] == wanted
    lacking = [{name: value for name, value in record.items() if value is not None} for record in records]
    assert [row for row, record in enumerate(lacking) if conditions.passes(record)] == wanted


VARIANTS = {
    "i": (pa.int64(), pa.int8(), pa.float64()),
    "f": (pa.float64(), pa.float32()),
    "s": (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
    "d": (pa.date32(), pa.date64()),
}


@given(records=rows, where=wheres, data=st.data())
def test_whole_columns_are_told_as_their_values(
    records: list[dict[str, Any]], where: list[Any], data: st.DataObject
) -> None:
    types = {name: data.draw(st.sampled_from(kinds)) for name, kinds in VARIANTS.items()}
    arrays = {name: pa.array([record[name] for record in records], types[name]) for name in types}
    batch = pa.RecordBatch.from_pydict(arrays)
    conditions = checked_where(where)
    found = passing(conditions, batch)
    if found is not None:
        assert found.tolist() == [conditions.passes(record) for record in batch.to_pylist()]
    asked = [
        types[column] for some in where for column, operator, *_ in some if not operator.startswith("is")
    ]
    if all(kind in TYPES.values() or kind == pa.large_string() for kind in asked) and not zeros(where):
        assert found is not None


def zeros(where: list[Any]) -> bool:
    return any(0 in some[2] for conditions in where for some in conditions if "in" in some[1].split())


@pytest.mark.parametrize(
    ("values", "condition"),
    [
        ([-0.0, 0.0, 1.0], ("c", "==", 0)),
        ([-0.0, 0.0, 1.0], ("c", "<", 0.0)),
        ([-0.0, 0.0, 1.0], ("c", "in", [0.0])),
        ([float("nan"), 1.0, None], ("c", "!=", 1.0)),
        ([float("nan"), 1.0, None], ("c", "not in", [1.0])),
        ([float("nan"), 1.0], ("c", "in", [float("nan")])),
        ([float("inf"), 1.0], ("c", "<=", float("inf"))),
        ([2**53 + 1, 2**53], ("c", "==", 2**53)),
        ([2**63 - 1, 0], ("c", "<", 2**63)),
        ([2**53 + 1, 2**53], ("c", "<", float(2**53))),
        ([1, 2], ("c", "<", 1.5)),
        (["\U0001f600", "\uffff", "a"], ("c", "<", "\U0001f600")),
        (["a", "b"], ("c", "<", "\ud800")),
        ([dt.date(2024, 1, 1), None], ("c", ">", dt.date(2023, 1, 1))),
        ([True, False, None], ("c", "==", True)),
        ([b"a", b"b"], ("c", "<", b"b")),
        ([None, None], ("c", "is null")),
        ([[1], None], ("c", "is not null")),
    ],
    ids=itertools.count(),
)
def test_what_arrow_sees_otherwise_is_asked_one_by_one(values: list[Any], condition: Any) -> None:
    conditions = checked_where([condition])
    found = passing(conditions, pa.RecordBatch.from_pydict({"c": values}))
    wanted = [conditions.passes({"c": value}) for value in values]
    assert found is None or found.tolist() == wanted


@given(records=rows, where=wheres, known=st.sets(st.sampled_from(sorted(VALUES))), exact=st.booleans())
def test_bounds_rule_out_nothing_that_passes(
    records: list[dict[str, Any]],
    where: list[Any],
    known: set[str],
    exact: bool,  # noqa: FBT001 - hypothesis draws it
) -> None:
    bounds = {}
    for name in known:
        there = [record[name] for record in records if record[name] is not None]
        least, greatest = (min(there), max(there)) if there else (None, None)
        bounds[name] = Bounds(
            least, greatest, nulls=len(there) < len(records), values=bool(there), exact=exact
        )
    conditions = checked_where(where)
    if any(conditions.passes(record) for record in records):
        assert conditions.may_pass(bounds)


@pytest.mark.parametrize(
    ("condition", "bounds", "may"),
    [
        (("n", "==", 5), Bounds(0, 4, nulls=True, values=True), False),
        (("n", "==", 4), Bounds(0, 4, nulls=True, values=True), True),
        (("n", "!=", 4), Bounds(4, 4, nulls=False, values=True), False),
        (("n", "!=", 4), Bounds(4, 4, nulls=False, values=True, exact=False), True),
        (("n", "!=", 4.0), Bounds(4.0, 4.0, nulls=False, values=True), True),  # there may be NaN besides
        (("n", "not in", [4, 5]), Bounds(4, 4, nulls=True, values=True), False),
        (("n", "in", [9, -1]), Bounds(0, 4, nulls=True, values=True), False),
        (("n", "<", 0), Bounds(0, 4, nulls=True, values=True), False),
        (("n", "<=", 0), Bounds(0, 4, nulls=True, values=True), True),
        (("n", ">", 4), Bounds(0, 4, nulls=True, values=True), False),
        (("n", ">=", 4), Bounds(0, 4, nulls=True, values=True), True),
        (("n", "is null"), Bounds(0, 4, nulls=False, values=True), False),
        (("n", "is not null"), Bounds(None, None, nulls=True, values=False), False),
        (("n", "==", 4), Bounds(None, None, nulls=True, values=False), False),
        (("n", "==", 4), Bounds(None, None, nulls=True, values=True), True),
        (("n", "==", "4"), Bounds(0, 4, nulls=True, values=True), True),  # the error shall be seen
        (("other", "==", 4), Bounds(0, 1, nulls=True, values=True), True),
    ],
)
def test_what_bounds_tell(condition: tuple[Any, ...], bounds: Bounds, *, may: bool) -> None:
    assert checked_where([condition]).may_pass({"n": bounds}) is may


@pytest.mark.parametrize(
    ("condition", "value", "kinds"),
    [
        (("c", "==", "5"), 5, "a number, and .* compares with a str"),
        (("c", "<", 5), "5", "a str, and .* compares with a number"),
        (("c", "==", 1), True, "a bool, and .* compares with a number"),
        (("c", "in", ["a", 1]), dt.date(2024, 1, 1), "a date, and .* compares with a number or a str"),
        (("c", "!=", b"x"), "x", "a str, and .* compares with a bytes"),
        (("c", "==", 1), [1], "a list, and .* compares with a number"),
        (
            ("c", "<", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
            dt.date(2024, 1, 1),
            "a date, and .* with a datetime",
        ),
    ],
)
def test_different_kinds_are_not_compared(condition: tuple[Any, ...], value: object, kinds: str) -> None:
    with pytest.raises(sk.errors.WrongType, match=kinds):
        checked_where([condition]).passes({"c": value})


def test_numbers_are_of_one_kind() -> None:
    for value in (2, 2.0, np.int8(2), np.float32(2), decimal.Decimal(2)):
        assert checked_where([("c", "==", 2)]).passes({"c": value})
        assert checked_where([("c", "in", [1.0, 2])]).passes({"c": value})
    assert checked_where(("c", "=", True)).passes({"c": np.bool_(True)})  # noqa: FBT003
    assert not checked_where([("c", "<", 2)]).passes({"c": float("nan")})


@pytest.mark.parametrize(
    ("where", "error", "why"),
    [
        ([], sk.errors.InvalidArgument, "at least one"),
        ([[("a", "==", 1)], []], sk.errors.InvalidArgument, "at least one"),
        ("a == 1", sk.errors.WrongType, "a list of conditions"),
        ({"a": 1}, sk.errors.WrongType, "a list of conditions"),
        ([("a", 1)], sk.errors.WrongType, "a condition is a tuple"),
        ([("a", "==", 1, 2)], sk.errors.WrongType, "a condition is a tuple"),
        ([["a", "==", 1]], sk.errors.WrongType, "a condition is a tuple"),
        (
            [("a", "like", "x")],
            sk.errors.InvalidArgument,
            "one of ==, !=, <, <=, >, >=, in, not in, is null, is not",
        ),
        ([("a", "==")], sk.errors.InvalidArgument, "'==' takes a value"),
        ([("a", "is null", 1)], sk.errors.InvalidArgument, "'is null' takes no value"),
        ([("a", "==", None)], sk.errors.InvalidArgument, r'write \("a|write .*is null'),
        ([("a", "in", [1, None])], sk.errors.InvalidArgument, "is null"),
        ([("a", "in", "abc")], sk.errors.WrongType, "'in' takes a list of values"),
        ([("a", "in", 3)], sk.errors.WrongType, "'in' takes a list of values"),
        ([("a", "in", [[1]])], sk.errors.WrongType, r"got \[1\]"),
    ],
)
def test_what_is_no_condition_is_named(where: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        checked_where(where)


def test_conditions_are_told_as_they_are_written_and_travel() -> None:
    where = checked_where([[("a", "in", {3, 1}), ("b", "is null")], [("c", "=", "x")]])
    assert where.written == [[("a", "in", [1, 3]), ("b", "is null")], [("c", "==", "x")]]
    assert checked_where([("a", "<", 1)]).written == [("a", "<", 1)]
    again = pickle.loads(pickle.dumps(where))
    assert again == where
    assert again.passes({"a": 3})
    assert where == Where(
        ((Condition("a", "in", (1, 3)), Condition("b", "is null")), (Condition("c", "==", "x"),))
    )


def test_below_a_node_conditions_have_its_childs_names_or_are_left_out() -> None:
    where = checked_where([[("new", "==", 1), ("made", "==", 2)], [("same", "<", 3)]])
    names = {"new": "old", "same": "same", "made": None}
    below = where.below(names.__getitem__)
    assert below is not None
    assert below.written == [[("old", "==", 1)], [("same", "<", 3)]]
    # Where one of the lists says nothing, any record may pass.
    assert checked_where([[("made", "==", 2)], [("same", "<", 3)]]).below(names.__getitem__) is None
