r"""Conditions on rows, and orders of rows, as the addresses of pages write them.

Conditions stand one after another with ``and`` between them, and a row is shown if all of them hold::

    meta.lang == "de" and meta.score >= 0.5 and length(text) < 200
    text contains "the committee" and id is not missing
    url matches ^https?://[^/]*wiki
    label in [1, 2, 7]

``contains`` and ``matches`` take capital and small letters alike. ``matches`` looks for a regular expression
of Python anywhere in a text, in a process of its own (`matching`); what it finds has at least one character.

A key is written as `path_of` reads it, in quotes as a JSON string if it has spaces. Of the elements of a
list (``messages[].role``) one has to pass. Values are those of JSON; a text of one word needs no quotes. The
comparisons are those of ``filter(where=)``: a row without the key, or with null, passes ``is missing`` alone.
A value of another kind than the one it is compared with passes nothing, and such rows are counted.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.conditions import Condition, checked_where
from seekable.viewer.facts.key_paths import path_of, path_text, values_at
from seekable.viewer.facts.matching import PlainNeedle, RegexNeedle, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.viewer.facts.key_paths import KeyPath

_MOST_CONDITIONS = 20
_OF_TEXTS = ("contains", "matches")
_HELP = (
    'write conditions as lang == "de" and score >= 0.5, text contains "word", text matches "w.rd", '
    "length(text) > 100, label in [1, 2] or id is missing"
)
_STRING = r'"(?:[^"\\]|\\.)*"'
_SUBJECT = re.compile(
    rf"\s*(?:(length)\s*\(\s*({_STRING}|[^\s\"()]+)\s*\)|({_STRING}|[^\s\"=!<>]+))", re.DOTALL
)
_OPERATOR = re.compile(
    r"\s*(==|!=|<=|>=|=|<|>|(?:is\s+not\s+missing|is\s+missing|not\s+in|in|contains|matches)(?![^\s\[\"]))"
)
_WORD = re.compile(rf"\s*({_STRING}|\[(?:{_STRING}|[^\]\"])*\]|[^\s\"\[]\S*)", re.DOTALL)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_ORDER = re.compile(
    rf"\s*(-?)\s*(?:(length)\s*\(\s*({_STRING}|[^\s\"()]+)\s*\)|({_STRING}|[^\s\"()]\S*))\s*", re.DOTALL
)

_LONGEST_KEY = 256
"""The characters of a text by which rows are sorted; rows that are equal in them stay in their order."""


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition on the values at a key, or on their lengths."""

    path: KeyPath
    of_length: bool
    operator: str
    """One of those of ``filter(where=)``, ``contains`` or ``matches``."""

    value: Any = None
    """What is compared with; a list for ``in``, None for the tests of null."""

    def __str__(self) -> str:
        """Return the condition as it is written.

        Example:
            >>> str(RowCondition(("meta", "n"), True, "<", 7)), str(RowCondition(("a b",), False, "is null"))
            ('length(meta.n) < 7', '"a b" is missing')
        """
        words = {"is null": "is missing", "is not null": "is not missing"}.get(self.operator)
        subject = subject_text(self.path, of_length=self.of_length)
        if words:
            return f"{subject} {words}"
        return f"{subject} {self.operator} {json.dumps(self.value, ensure_ascii=False)}"


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The key by whose values, or by whose lengths, rows are sorted."""

    path: KeyPath
    of_length: bool = False
    descending: bool = False

    def __str__(self) -> str:
        """Return the order as it is written."""
        return ("-" if self.descending else "") + subject_text(self.path, of_length=self.of_length)

    def key_of(self, record: Any) -> tuple[str, Any] | None:
        """Return the kind and the value of a record by which it is sorted; None if it has none.

        Numbers, true and false are one kind, and so are texts, bytes, dates and times.

        Example:
            >>> RowOrder(("a",)).key_of({"a": 3}), RowOrder(("a",), of_length=True).key_of({"a": "xyz"})
            (('number', 3), ('number', 3))
        """
        for value in values_at(record, self.path):
            found = length_of(value) if self.of_length else value
            if isinstance(found, bool | int | float | decimal.Decimal | np.number):
                # NaN has no place among numbers.
                return ("number", found) if found == found else None  # noqa: PLR0124
            if isinstance(found, str):
                return "text", found[:_LONGEST_KEY]
            if isinstance(found, bytes):
                return "text", found[:_LONGEST_KEY].decode("latin-1")
            if isinstance(found, dt.datetime | dt.date | dt.time):
                return "text", found.isoformat()
            if isinstance(found, dt.timedelta):
                return "number", found.total_seconds()
        return None


def length_of(value: Any) -> int | None:
    """Return the characters of a text, the bytes, or the elements of a list; None for other values.

    Example:
        >>> length_of("abc"), length_of([1, 2]), length_of(5)
        (3, 2, None)
    """
    if isinstance(value, str | bytes | list | tuple):
        return len(value)
    return (value.shape[0] if value.ndim else 1) if isinstance(value, np.ndarray) else None


def subject_text(path: KeyPath, *, of_length: bool = False) -> str:
    """Return a key as conditions and orders name it.

    Example:
        >>> subject_text(("meta", "lang")), subject_text(("my key",), of_length=True)
        ('meta.lang', 'length("my key")')
    """
    text = path_text(path)
    plain = re.fullmatch(r"[^\s\"=!<>()-][^\s\"=!<>()]*", text)
    text = text if plain and text != "length" else json.dumps(text, ensure_ascii=False)
    return f"length({text})" if of_length else text


def order_of(text: str) -> RowOrder:
    """Return the order that a text stands for: a key, or ``length(KEY)``; after a ``-`` the largest first.

    Raises:
        InvalidArgument: the text cannot be read.

    Example:
        >>> str(order_of("-length(text)")), order_of("meta.score").descending
        ('-length(text)', False)
    """
    found = _ORDER.fullmatch(text)
    if not found:
        message = (
            f"an order is a key, as in score, -score (the largest first) or length(text) (got {text[:80]!r})"
        )
        raise InvalidArgument(message)
    minus, length, of_length, plain = found.groups()
    return RowOrder(_path(of_length or plain), of_length=bool(length), descending=bool(minus))


def conditions_of(text: str) -> tuple[RowCondition, ...]:
    """Return the conditions that a text stands for; none for a blank one.

    Raises:
        InvalidArgument: the text cannot be read; the message says from where on, and how it is written.

    Example:
        >>> found = conditions_of('meta.lang == de and length(text) >= 10 and "a key" is missing')
        >>> [str(each) for each in found]
        ['meta.lang == "de"', 'length(text) >= 10', '"a key" is missing']
    """
    return tuple(_read(text)) if text.strip() else ()


def _read(text: str) -> Iterator[RowCondition]:
    at = count = 0
    while True:
        condition, at = _condition(text, at)
        yield condition
        count += 1
        if not text[at:].strip():
            return
        between = _AND.match(text, at)
        if not between or count == _MOST_CONDITIONS:
            why = "" if between is None else f"; at most {_MOST_CONDITIONS} conditions are read"
            raise _unread(text, at, why)
        at = between.end()


def _condition(text: str, at: int) -> tuple[RowCondition, int]:
    subject = _SUBJECT.match(text, at)
    operator = subject and _OPERATOR.match(text, subject.end())
    if not subject or not operator:
        raise _unread(text, at)
    length, of_length, plain = subject.groups()
    path, at = _path(of_length or plain), operator.end()
    op = {"=": "==", "is missing": "is null", "is not missing": "is not null"}.get(
        found := " ".join(operator[1].split()), found
    )
    if op in ("is null", "is not null"):
        return RowCondition(path, bool(length), op), at
    word = _WORD.match(text, at)
    if not word:
        raise _unread(text, at)
    # What is contained or matched is a text, also where it looks like a number.
    value = word[1] if op in _OF_TEXTS and not word[1].startswith('"') else _value(word[1])
    listed, number = isinstance(value, list), isinstance(value, int | float) and not isinstance(value, bool)
    if listed != (op in ("in", "not in")):
        raise _unread(text, at, f"; {op} takes {'one value' if listed else 'a list'}")
    if value is None or isinstance(value, dict) or (length and not (listed or number)):
        raise _unread(text, at)
    condition = RowCondition(path, bool(length), op, value)
    if op not in _OF_TEXTS:
        checked_where([("value", op, value)])
    return condition, word.end()


def _path(text: str) -> KeyPath:
    return path_of(_value(text) if text.startswith('"') else text)


def _value(text: str) -> Any:
    """Return the value that a word writes: one of JSON, or the word itself."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        if text.startswith(('"', "[")):
            message = f"{text[:80]} is written as in JSON, and cannot be read so ({error}): {_HELP}"
            raise InvalidArgument(message) from error
        return text


def _unread(text: str, at: int, why: str = "") -> InvalidArgument:
    rest = text[at:].strip()[:60]
    there = f"cannot be read from {rest!r} on" if rest else "ends too early"
    return InvalidArgument(f"the filter {text[:80]!r} {there}{why}: {_HELP}")


class RowTest:
    """Conditions that are applied to records.

    Example:
        >>> test = RowTest(conditions_of("n > 2"))
        >>> test.passing([{"n": 3}, {"n": "3"}, {}, {"n": 4}]), test.others
        ([0, 3], 1)
    """

    def __init__(self, conditions: tuple[RowCondition, ...]) -> None:
        self.others = 0
        """The records with a value of another kind than the one that it is compared with."""
        self._tests = [(each, _test_of(each)) for each in conditions if each.operator != "matches"]
        self._regexes = [
            (each.path, RegexNeedle(each.value)) for each in conditions if each.operator == "matches"
        ]

    def passing(self, records: Sequence[Any]) -> list[int]:
        """Return the places of the records for which all conditions hold.

        Raises:
            InvalidArgument: a condition has no regular expression, or one that takes too long.
        """
        found = [at for at, record in enumerate(records) if self._passes(record)]
        for path, needle in self._regexes:
            texts = [
                (at, as_text(value))
                for at in found
                for value in values_at(records[at], path)
                if isinstance(value, str | bytes)
            ]
            spans = needle.spans([text for _, text in texts], most=1)
            found = list(dict.fromkeys(at for (at, _), some in zip(texts, spans, strict=True) if some))
        return found

    def close(self) -> None:
        """End the processes that match regular expressions."""
        for _, needle in self._regexes:
            needle.close()

    def _passes(self, record: Any) -> bool:
        return all(self._holds(condition, test, record) for condition, test in self._tests)

    def _holds(self, condition: RowCondition, test: Condition | PlainNeedle, record: Any) -> bool:
        values = [value for value in values_at(record, condition.path) if value is not None]
        if condition.of_length:
            values = [length for value in values if (length := length_of(value)) is not None]
        if isinstance(test, PlainNeedle):
            return any(test.is_in(value) for value in values if isinstance(value, str | bytes))
        if condition.operator in ("is null", "is not null"):
            return bool(values) == (condition.operator == "is not null")
        other = False
        for value in values:
            try:
                if test.holds(value):
                    return True
            except (WrongType, TypeError, ValueError):
                other = True
        self.others += other
        return False


def _test_of(condition: RowCondition) -> Condition | PlainNeedle:
    if condition.operator == "contains":
        return PlainNeedle(condition.value)
    return checked_where(
        [("value", condition.operator, condition.value)]
        if condition.value is not None
        else [("value", condition.operator)]
    ).any_of[0][0]
