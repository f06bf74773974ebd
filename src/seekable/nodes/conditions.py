"""Conditions on columns, by which ``filter(where=)`` keeps records without a function.

They are written as pyarrow's are: ``("lang", "==", "de")`` is a condition, a list of conditions holds where
all of them do, and a list of such lists where one of them does. A column that a record lacks counts as None,
and None passes ``is null`` and nothing else, as in SQL.

Values of different kinds are not compared: ``("id", "==", "5")`` over numbers would keep nothing
without any error.

``passing`` evaluates conditions on columns of an Arrow table, where Arrow gives the answer of
`Condition.holds` for certain. All other records are evaluated one by one, which also raises the errors.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import operator
from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

__all__ = ["Bounds", "Condition", "Where", "checked_where", "passing"]


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_AMONG, _NULL = ("in", "not in"), ("is null", "is not null")

_OPERATORS = (*_COMPARE, *_AMONG, *_NULL)

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "bool"),
    ((int, float, decimal.Decimal, np.number), "number"),
    (str, "str"),
    (bytes, "bytes"),
    (dt.datetime, "datetime"),
    (dt.date, "date"),
    (dt.time, "time"),
    (dt.timedelta, "timedelta"),
)
"""A bool is an int and a datetime a date, so these come first."""

_PAIR, _TRIPLE = 2, 3


def _kind(value: object) -> str:
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return type(value).__name__


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a column's values in a run of rows."""

    least: Any
    """A lower bound of all values; None if there is none."""

    greatest: Any
    """An upper bound of all values; None if there is none."""

    nulls: bool
    """True if there may be nulls."""

    values: bool
    """True if there may be values that are not null."""

    exact: bool = True
    """True if both bounds are values that occur, neither cut nor rounded."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column: an operator, and the value that it compares the column with.

    Example:
        >>> Condition("n", "<", 3).holds(2), Condition("n", "<", 3).holds(None)
        (True, False)
    """

    column: str
    operator: str
    value: Any = None
    """The value to compare with; a tuple for ``in`` and ``not in``, None for the tests of null."""

    types: frozenset[type] = field(init=False, repr=False, compare=False)
    """The types of ``value``, or of its elements for ``in`` and ``not in``."""

    among: frozenset[Any] = field(init=False, repr=False, compare=False)
    """The elements of ``value`` for ``in`` and ``not in``; empty for other operators."""

    def __post_init__(self) -> None:
        """Compute ``types`` and ``among`` once, because each record is compared."""
        listed = self.operator in _AMONG
        values = self.value if listed else (self.value,)
        object.__setattr__(self, "types", frozenset(map(type, values)))
        object.__setattr__(self, "among", frozenset(values if listed else ()))

    def holds(self, value: Any) -> bool:
        """Return True if a value of the column meets the condition.

        Raises:
            WrongType: the value is not of the kind of ``self.value``, such as a str beside a number.
        """
        op = self.operator
        if value is None or op in _NULL:
            return (value is None) == (op == "is null") and op in _NULL
        if type(value) not in self.types:
            self._must_compare(value)
        if op in _AMONG:
            return (value in self.among) == (op == "in")
        return bool(_COMPARE[op](value, self.value))

    def may_hold(self, bounds: Bounds) -> bool:
        """Return False if no value within the bounds can meet the condition, else True."""
        if self.operator in _NULL:
            return bounds.nulls if self.operator == "is null" else bounds.values
        if not bounds.values:
            return False
        if bounds.least is None or bounds.greatest is None:
            return True
        try:
            return self._may_hold_between(bounds.least, bounds.greatest, one=_is_one(bounds))
        except (TypeError, ValueError):
            return True

    def _may_hold_between(self, least: Any, greatest: Any, *, one: bool) -> bool:
        value = self.value
        match self.operator:
            case "==":
                return bool(least <= value <= greatest)
            case "in":
                return any(least <= some <= greatest for some in value)
            case "<" | "<=":
                return bool(_COMPARE[self.operator](least, value))
            case ">" | ">=":
                return bool(_COMPARE[self.operator](greatest, value))
            case "!=":
                return not (one and least == value)
            case _:
                return not (one and least in value)

    def _must_compare(self, value: Any) -> None:
        kinds = {_kind(some) for some in (self.value if self.operator in _AMONG else (self.value,))}
        kind = _kind(value)
        if kinds and kind not in kinds:
            message = (
                f"the column {self.column!r} has {value!r}, a {kind}, and the condition {self} compares with "
                f"a {' or a '.join(sorted(kinds))}: write a value of the same kind, or filter by a function"
            )
            raise WrongType(message)

    def __str__(self) -> str:
        return repr(self.written)

    @property
    def written(self) -> tuple[Any, ...]:
        """The condition as a user writes it, a tuple of two or three elements."""
        if self.operator in _NULL:
            return self.column, self.operator
        return self.column, self.operator, list(self.value) if self.operator in _AMONG else self.value


def _is_one(bounds: Bounds) -> bool:
    """Return True if all values are equal. Never for floats: bounds leave NaN out."""
    floating = isinstance(bounds.least, float | np.floating)
    return bounds.exact and not floating and bool(bounds.least == bounds.greatest)


@dataclass(frozen=True, slots=True)
class Where:
    """Lists of conditions: a record passes where all conditions of one list hold.

    Example:
        >>> where = checked_where([[("n", "<", 3)], [("lang", "in", ["de", "fr"]), ("n", "is not null")]])
        >>> where.passes({"n": 9, "lang": "de"}), where.passes({"n": 9}), sorted(where.columns)
        (True, False, ['lang', 'n'])
    """

    any_of: tuple[tuple[Condition, ...], ...]

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that the conditions read."""
        return frozenset(condition.column for conditions in self.any_of for condition in conditions)

    def passes(self, record: Mapping[str, Any]) -> bool:
        """Return True if a record meets all conditions of one list.

        Raises:
            WrongType: a value is not of the kind that its condition compares with.
        """
        for conditions in self.any_of:
            for condition in conditions:
                if not condition.holds(record.get(condition.column)):
                    break
            else:
                return True
        return False

    def may_pass(self, bounds: Mapping[str, Bounds]) -> bool:
        """Return False if no record whose columns lie within ``bounds`` can pass, else True.

        Args:
            bounds: the bounds of each column; a column without known bounds is left out.

        Example:
            >>> checked_where([("n", ">", 10)]).may_pass({"n": Bounds(0, 9, nulls=True, values=True)})
            False
        """
        return any(
            all(
                condition.column not in bounds or condition.may_hold(bounds[condition.column])
                for condition in conditions
            )
            for conditions in self.any_of
        )

    def below(self, names: Callable[[str], str | None]) -> Where | None:
        """Return conditions on the child of a node that renames or changes columns.

        Args:
            names: maps a column's name to its name in the child; to None if its values differ there.

        Returns:
            Conditions that the child's record of every passing record meets; None if there are none.
        """
        lists = []
        for conditions in self.any_of:
            kept = [
                replace(condition, column=name)
                for condition in conditions
                if (name := names(condition.column)) is not None
            ]
            if not kept:
                return None
            lists.append(tuple(kept))
        return Where(tuple(lists))

    @property
    def written(self) -> list[Any]:
        """The conditions as a user writes them: one list of tuples, or a list of such lists."""
        lists = [[condition.written for condition in conditions] for conditions in self.any_of]
        return lists[0] if len(lists) == 1 else lists


def checked_where(where: object) -> Where:
    """Return the conditions of ``filter(where=)`` after checks.

    Raises:
        WrongType: ``where`` is not a list of tuples, or a list of such lists.
        InvalidArgument: an operator is unknown, or a list is empty.
    """
    if isinstance(where, tuple) and where and isinstance(where[0], str):
        where = [where]
    if not isinstance(where, list | tuple):
        message = (
            f'where takes a list of conditions such as ("lang", "==", "de") (got {type(where).__name__})'
        )
        raise WrongType(message)
    lists = where if where and all(isinstance(some, list) for some in where) else [where]
    return Where(tuple(tuple(_conditions(some)) for some in lists))


def _conditions(some: Any) -> Iterator[Condition]:
    if not some:
        message = "a list of conditions must have at least one (got none)"
        raise InvalidArgument(message)
    for condition in some:
        if not (
            isinstance(condition, tuple)
            and len(condition) in (_PAIR, _TRIPLE)
            and all(isinstance(part, str) for part in condition[:2])
        ):
            form = '(column, operator, value), or (column, "is null")'
            message = f"a condition is a tuple, {form} (got {condition!r})"
            raise WrongType(message)
        column, op = condition[0], "==" if condition[1] == "=" else condition[1]
        if op not in _OPERATORS:
            message = f"the operator of a condition is one of {', '.join(_OPERATORS)} (got {condition!r})"
            raise InvalidArgument(message)
        if (len(condition) == _PAIR) != (op in _NULL):
            message = f"{op!r} takes {'no' if op in _NULL else 'a'} value (got {condition!r})"
            raise InvalidArgument(message)
        yield Condition(column, op, None if op in _NULL else _value(condition, op))


def _value(condition: tuple[Any, ...], op: str) -> Any:
    value = condition[2]
    if op in _AMONG:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            message = f"{op!r} takes a list of values (got {condition!r})"
            raise WrongType(message)
        value = tuple(sorted(value, key=repr)) if isinstance(value, AbstractSet) else tuple(value)
        if unhashable := [some for some in value if not isinstance(some, Hashable)]:
            message = f"{op!r} takes numbers, texts and the like (got {unhashable[0]!r})"
            raise WrongType(message)
    if value is None or (op in _AMONG and None in value):
        message = (
            f'a condition does not compare with None: write ({condition[0]!r}, "is null") (got {condition!r})'
        )
        raise InvalidArgument(message)
    return value


_EXACT = 1 << 53
"""Integers up to this magnitude convert to float64 without loss."""

_ARROW_COMPARE = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def passing(where: Where, batch: pa.RecordBatch) -> Bools | None:
    """Return the rows of a batch that pass, as a bool array; None if Arrow might answer otherwise.

    Example:
        >>> import pyarrow as pa
        >>> batch = pa.RecordBatch.from_pydict({"n": [1, None, 3]})
        >>> passing(checked_where([("n", "<", 3)]), batch).tolist()
        [True, False, False]
        >>> passing(checked_where([("n", "<", "3")]), batch) is None
        True
    """
    whole = np.zeros(batch.num_rows, dtype=np.bool_)
    for conditions in where.any_of:
        every = np.ones(batch.num_rows, dtype=np.bool_)
        for condition in conditions:
            if condition.column not in batch.schema.names:
                return None
            one = _holding(condition, batch.column(condition.column))
            if one is None:
                return None
            every &= one
        whole |= every
    return whole


def _holding(condition: Condition, column: pa.Array) -> Bools | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    there: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    if condition.operator in ("is null", "is not null"):
        return there if condition.operator == "is not null" else ~there
    values = condition.value if condition.operator in ("in", "not in") else (condition.value,)
    if not all(_is_exact(value, column.type) for value in values):
        return None
    if not values:
        return np.zeros_like(there) if condition.operator == "in" else there
    if condition.operator in ("in", "not in"):
        if pa.types.is_floating(column.type) and 0 in values:
            return None  # Zeros have two signs, and Arrow's look-ups may treat them as different.
        among: Bools = pc.is_in(column, value_set=pa.array(values, type=column.type)).to_numpy(
            zero_copy_only=False
        )
        return (among if condition.operator == "in" else ~among) & there
    compared = pc.call_function(
        _ARROW_COMPARE[condition.operator], [column, pa.scalar(values[0], column.type)]
    )
    held: Bools = pc.fill_null(compared, False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - pyarrow's own
    return held


def _is_exact(value: Any, kind: pa.DataType) -> bool:
    """Return True if a value has the column's type, and Arrow compares it as Python does."""
    import pyarrow as pa

    types = pa.types
    if types.is_integer(kind):
        bounds = np.iinfo(str(kind))
        return type(value) is int and bool(bounds.min <= value <= bounds.max)
    if types.is_float64(kind):
        number = type(value) is float or (type(value) is int and abs(value) <= _EXACT)
        return number and not math.isnan(value)
    if types.is_string(kind) or types.is_large_string(kind):
        return type(value) is str and _is_unicode(value)
    return types.is_date32(kind) and type(value) is dt.date


def _is_unicode(text: str) -> bool:
    """Return True if a text has a UTF-8 form, whose byte order is Python's order of texts."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
