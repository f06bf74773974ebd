"""Conditions on columns: what a filter asks of records without a function.

They are written as pyarrow's are: ``("lang", "==", "de")`` is a condition, a list of conditions holds where
all of them do, and a list of such lists where one of them does. A column that a record lacks counts as None,
and None passes ``is null`` and nothing else, as in SQL.

Values of different kinds are not compared: ``("id", "==", "5")`` over numbers would keep nothing, and nobody
would know why.
"""

from __future__ import annotations

import datetime as dt
import decimal
import operator
from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.table_format import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Bounds", "Condition", "Where", "checked_where"]

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
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (np.bool_, "bool"),
    (int, "number"),
    (float, "number"),
    (decimal.Decimal, "number"),
    (np.number, "number"),
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
class Condition:
    """One column, an operator and what it is compared with.

    Example:
        >>> Condition("n", "<", 3).holds(2), Condition("n", "<", 3).holds(None)
        (True, False)
    """

    column: str
    operator: str
    value: Any = None
    """For ``in`` and ``not in`` a tuple."""

    types: frozenset[type] = field(init=False, repr=False, compare=False)
    """The types of the values that are compared with."""

    among: frozenset[Any] = field(init=False, repr=False, compare=False)
    """The values of ``in`` and ``not in``, for looking up."""

    def __post_init__(self) -> None:
        """Take note of the types once: conditions are asked record by record."""
        listed = self.operator in _AMONG
        values = self.value if listed else (self.value,)
        object.__setattr__(self, "types", frozenset(map(type, values)))
        object.__setattr__(self, "among", frozenset(values if listed else ()))

    def holds(self, value: Any) -> bool:
        """Tell whether a value passes.

        Raises:
            WrongType: it is not of the kind that it is compared with.
        """
        asked = self.operator
        if value is None or asked in _NULL:
            return (value is None) == (asked == "is null") and asked in _NULL
        if type(value) not in self.types:
            self._must_compare(value)
        if asked in _AMONG:
            return (value in self.among) == (asked == "in")
        return bool(_COMPARE[asked](value, self.value))

    def may_hold(self, bounds: Bounds) -> bool:
        """Tell whether a value within bounds can pass; True where that cannot be told."""
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
        wanted = self.value
        match self.operator:
            case "==":
                return bool(least <= wanted <= greatest)
            case "in":
                return any(least <= some <= greatest for some in wanted)
            case "<" | "<=":
                return bool(_COMPARE[self.operator](least, wanted))
            case ">" | ">=":
                return bool(_COMPARE[self.operator](greatest, wanted))
            case "!=":
                return not (one and least == wanted)
            case _:
                return not (one and least in wanted)

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
        return repr(self.told)

    @property
    def told(self) -> tuple[Any, ...]:
        """The condition as a user writes it."""
        if self.operator in _NULL:
            return self.column, self.operator
        return self.column, self.operator, list(self.value) if self.operator in _AMONG else self.value


def _is_one(bounds: Bounds) -> bool:
    """Tell whether all values are one; floats may be NaN besides, which bounds do not tell."""
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
        """The columns that are asked about."""
        return frozenset(condition.column for conditions in self.any_of for condition in conditions)

    def passes(self, record: Mapping[str, Any]) -> bool:
        """Tell whether a record passes.

        Raises:
            WrongType: a value is not of the kind that it is compared with.
        """
        for conditions in self.any_of:
            for condition in conditions:
                if not condition.holds(record.get(condition.column)):
                    break
            else:
                return True
        return False

    def may_pass(self, bounds: Mapping[str, Bounds]) -> bool:
        """Tell whether a record within the bounds of its columns can pass.

        Args:
            bounds: of each column what is known; nothing of those that are not there.

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
        """Return what must hold below a node that gives columns other names or values.

        Args:
            names: what a column is called there; None where its values are others there.

        Returns:
            Conditions that every passing record meets; None if nothing can be said.
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
    def told(self) -> list[Any]:
        """The conditions as a user writes them: one list, or several."""
        lists = [[condition.told for condition in conditions] for conditions in self.any_of]
        return lists[0] if len(lists) == 1 else lists


def checked_where(where: object) -> Where:
    """Return the conditions that a user wrote.

    Raises:
        WrongType: they are not lists of tuples.
        InvalidArgument: an operator is not known, or a list is empty.
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
        column, asked = condition[0], "==" if condition[1] == "=" else condition[1]
        if asked not in _OPERATORS:
            message = f"the operator of a condition is one of {', '.join(_OPERATORS)} (got {condition!r})"
            raise InvalidArgument(message)
        if (len(condition) == _PAIR) != (asked in _NULL):
            message = f"{asked!r} takes {'no' if asked in _NULL else 'a'} value (got {condition!r})"
            raise InvalidArgument(message)
        yield Condition(column, asked, None if asked in _NULL else _value(condition, asked))


def _value(condition: tuple[Any, ...], asked: str) -> Any:
    value = condition[2]
    if asked in _AMONG:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            message = f"{asked!r} takes a list of values (got {condition!r})"
            raise WrongType(message)
        value = tuple(sorted(value, key=repr)) if isinstance(value, AbstractSet) else tuple(value)
        if unhashable := [some for some in value if not isinstance(some, Hashable)]:
            message = f"{asked!r} takes numbers, texts and the like (got {unhashable[0]!r})"
            raise WrongType(message)
    if value is None or (asked in _AMONG and None in value):
        message = (
            f'a condition does not compare with None: write ({condition[0]!r}, "is null") (got {condition!r})'
        )
        raise InvalidArgument(message)
    return value
