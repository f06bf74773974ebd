"""The values of one key: counted as records are read, and a frozen fact at any time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.viewer.facts.histogram import lengths_in_bins, numbers_in_bins
from seekable.viewer.facts.key_paths import path_text
from seekable.viewer.facts.made_of import share_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.viewer.facts.histogram import Histogram
    from seekable.viewer.facts.key_paths import Path
    from seekable.viewer.facts.made_of import Share

__all__ = ["KeyFacts", "KeyTally", "Lengths", "Numbers", "TopValue", "type_name"]

_LONGEST_COUNTED = 200
"""The longest texts, in characters, that are counted as values; so memory does not grow with long texts."""

_MOST_COUNTED = 10_000
"""The most different values that are counted; those that come later are not."""

_NAMES = {type(None): "null", np.ndarray: "array", tuple: "list"}

_NUMBER = "number"
_MOST_LABELS = 50
_COUNTED = (str, int, float, bool)

_UNITS = {"str": "characters", "bytes": "bytes", "list": "elements", "array": "rows of the first axis"}


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of at least one value that has a length."""

    unit: str
    """"characters", "bytes", "elements" or "rows of the first axis"."""

    mean: float
    shortest: int
    p50: int
    p99: int
    longest: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """The range of at least one finite number."""

    least: float
    mean: float
    most: float


@dataclass(frozen=True, slots=True)
class TopValue:
    """A frequent value with its share among all rows."""

    value: str | int | float | bool
    share: Share


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A description of the values of one key."""

    path: Path
    present: Share
    """The share of the records with the key; below a list, of the dicts among its elements."""

    types: tuple[tuple[str, Share], ...]
    """The types of the values, the most frequent first, each with its share among the values."""

    empty: Share
    """The share of the values that are empty texts, bytes, lists or dicts."""

    lengths: Lengths | None
    """The lengths of the values of the most frequent type beside null; None if these have none."""

    numbers: Numbers | None
    """The range of the numbers, if these are the most frequent values beside null; else None."""

    top: tuple[TopValue, ...]
    """The most frequent values; texts of up to 200 characters, numbers, true and false."""

    distinct: int | None
    """The number of different values that were seen; None if there are too many or too long ones to count."""

    @property
    def constant(self) -> bool:
        """True if all values that were seen are one value."""
        return self.distinct == 1 and self.present.count > 1

    @property
    def is_label(self) -> bool:
        """True if the values are few different ones that come again and again, all of them in ``top``."""
        counted = sum(each.share.count for each in self.top)
        return (
            bool(self.top) and len(self.top) <= _MOST_LABELS and 2 * len(self.top) <= counted == self._counted
        )

    @property
    def _counted(self) -> int:
        """The number of values that are not null; -1 if some are not counted one by one."""
        nulls = sum(share.count for name, share in self.types if name == "null")
        return self.top[0].share.of - nulls if self.top else -1

    def document(self) -> dict[str, Any]:
        """Return the facts of the key, JSON-safe."""
        lengths, numbers = self.lengths, self.numbers
        return {
            "key": path_text(self.path),
            "present": self.present.document(),
            "types": [{"type": name, **share.document()} for name, share in self.types],
            "empty": self.empty.document(),
            "constant": self.constant,
            "distinct": self.distinct,
            "lengths": lengths
            and {
                name: getattr(lengths, name) for name in ("unit", "mean", "shortest", "p50", "p99", "longest")
            },
            "numbers": numbers and {name: getattr(numbers, name) for name in ("least", "mean", "most")},
            "top": [{"value": _json_safe(each.value), **each.share.document()} for each in self.top],
        }


def type_name(value: object) -> str:
    """Return the name of the type of a value, as facts and pages print it.

    Example:
        >>> type_name(None), type_name(1.5), type_name((1, 2))
        ('null', 'float', 'list')
    """
    return _NAMES.get(type(value), type(value).__name__)


class KeyTally:
    """Counts the values of one key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._types: Counter[str] = Counter()
        self._empty = 0
        self._lengths: dict[str, list[Any]] = {}
        """By the name of the type."""
        self._numbers: list[Any] = []
        self._values: dict[type, Counter[Any]] = {kind: Counter() for kind in _COUNTED}
        self._uncounted = 0

    def add(self, values: Sequence[Any]) -> None:
        """Count some values of the key."""
        self.count += len(values)
        kinds = Counter(map(type, values))
        for kind, number in kinds.items():
            name = _NAMES.get(kind, kind.__name__)
            self._types[name] += number
            some = values if len(kinds) == 1 else [value for value in values if type(value) is kind]
            if name in _UNITS or kind is dict:
                self._measure(name, some)
            if kind in (int, float):
                self._numbers.append(np.array(list(map(_as_float, some)), np.float64))
            if kind in self._values:
                self._count(kind, some)
            elif some and some[0] is not None:
                self._uncounted += number

    def facts(self, of: int, *, exact: bool, top: int = 10) -> KeyFacts:
        """Return what is known so far.

        Args:
            of: the number of records, or of dicts below a list, that could have the key.
            exact: True if these are all there are.
            top: the most values to return.
        """
        counted = Counter(
            {
                (kind, value): count
                for kind, values in self._values.items()
                for value, count in values.most_common(top)
            }
        )
        nulls = self._types["null"]
        distinct = sum(map(len, self._values.values())) + (nulls > 0)
        return KeyFacts(
            path=self.path,
            present=share_of(self.count, of, exact=exact),
            types=tuple(
                (name, share_of(count, self.count, exact=exact)) for name, count in self._types.most_common()
            ),
            empty=share_of(self._empty, self.count, exact=exact),
            lengths=self._all_lengths(),
            numbers=self._all_numbers(),
            top=tuple(
                TopValue(value, share_of(count, self.count, exact=exact))
                for (_, value), count in counted.most_common(top)
            ),
            distinct=None if self._uncounted else distinct,
        )

    def histograms(self) -> tuple[Histogram | None, Histogram | None]:
        """Return the histograms of the lengths and of the finite numbers; None where there are none."""
        lengths = np.concatenate([np.empty(0, np.int64), *self._lengths.get(self._usual(), [])])
        numbers = [np.empty(0, np.float64), *(self._numbers if self._usual() == _NUMBER else [])]
        return lengths_in_bins(lengths), numbers_in_bins(np.concatenate(numbers))

    def _usual(self) -> str:
        """Return the name of the most frequent type beside null, one for all numbers; empty of no values."""
        counts: Counter[str] = Counter()
        for name, count in self._types.items():
            counts[_NUMBER if name in ("int", "float") else name] += count
        del counts["null"]
        return counts.most_common(1)[0][0] if counts else ""

    def _measure(self, name: str, values: Sequence[Any]) -> None:
        counts = (
            [value.shape[0] if value.ndim else 1 for value in values] if name == "array" else map(len, values)
        )
        lengths = np.fromiter(counts, np.int64, len(values))
        self._empty += int((lengths == 0).sum())
        if name in _UNITS:
            self._lengths.setdefault(name, []).append(lengths)

    def _count(self, kind: type, values: Sequence[Any]) -> None:
        if kind is str:
            short = [value for value in values if len(value) <= _LONGEST_COUNTED]
            self._uncounted += len(values) - len(short)
            values = short
        elif kind is float:
            values = [value for value in values if value == value]  # noqa: PLR0124 - no NaN equals itself
        counter = self._values[kind]
        if len(counter) < _MOST_COUNTED:
            counter.update(values)
        else:
            known = [value for value in values if value in counter]
            self._uncounted += len(values) - len(known)
            counter.update(known)

    def _all_lengths(self) -> Lengths | None:
        name = self._usual()
        if name not in self._lengths:
            return None
        lengths = np.sort(np.concatenate(self._lengths[name]))
        self._lengths[name] = [lengths]
        ranks = [-(-lengths.size * percent // 100) - 1 for percent in (50, 99)]
        p50, p99 = lengths[ranks].tolist()
        return Lengths(_UNITS[name], float(lengths.mean()), int(lengths[0]), p50, p99, int(lengths[-1]))

    def _all_numbers(self) -> Numbers | None:
        if self._usual() != _NUMBER:
            return None
        numbers = np.concatenate(self._numbers)
        self._numbers = [numbers]
        finite = numbers[np.isfinite(numbers)]
        if not finite.size:
            return None
        # Halves first: the sum of large numbers may be beyond the largest float.
        mean = float((finite / finite.size).sum())
        return Numbers(float(finite.min()), mean, float(finite.max()))


def _rows_of_array(array: Any) -> int:
    return int(array.shape[0]) if array.ndim else 1


def _as_float(value: float) -> float:
    """Return a number as a float; an integer beyond the largest float as infinity."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _json_safe(value: Any) -> Any:
    """Return a value that JSON holds: infinities and halves of surrogate pairs as text."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return str(value) if isinstance(value, int) and abs(value) >= 1 << 63 else value
