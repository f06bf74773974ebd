"""The keys of records, their types and values, counted in a sample that grows: all keys, or one in detail."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import CorruptRecord
from seekable.viewer.facts.histogram import lengths_in_bins, numbers_in_bins
from seekable.viewer.facts.key_paths import path_text, values_at
from seekable.viewer.facts.reading import Sampled, Share, share_of, surveyed, whole_of

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.nodes.node import Node
    from seekable.viewer.facts.histogram import Histogram
    from seekable.viewer.facts.key_paths import KeyPath


_MOST_KEYS = 500
_MOST_DEPTH = 16
_MOST_SHAPES = 10
_MOST_EXAMPLES = 20

_ELEMENTS = 16
"""The first elements of a list that are looked at."""

_LONGEST_COUNTED = 200
"""The longest texts, in characters, that are counted as values; so memory does not grow with long texts."""

_MOST_COUNTED = 10_000
"""The most different values that are counted; those that come later are not."""

_NAMES = {type(None): "null", np.ndarray: "array", tuple: "list"}

_NUMBER = "number"
_MOST_LABELS = 50
_COUNTED = (str, int, float, bool)

_UNITS = {"str": "characters", "bytes": "bytes", "list": "elements", "array": "elements"}


@dataclass(frozen=True, slots=True)
class ValueLengths:
    """The lengths of at least one value that has a length."""

    unit: str
    """"characters", "bytes" or "elements": of an array those of the first axis."""

    mean: float
    shortest: int
    p50: int
    p99: int
    longest: int


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The range of at least one finite number."""

    least: float
    mean: float
    most: float


@dataclass(frozen=True, slots=True)
class TopValue:
    """A frequent value with its share of all rows."""

    value: str | int | float | bool
    share: Share


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A description of the values of one key."""

    path: KeyPath
    present: Share
    """The share of the records with the key; below a list, of the dicts among its elements."""

    types: tuple[tuple[str, Share], ...]
    """The types of the values, the most frequent first, each with its share among the values."""

    empty: Share
    """The share of the values that are empty texts, bytes, lists or dicts."""

    lengths: ValueLengths | None
    """The lengths of the values of the most frequent type beside null; None if these have none."""

    numbers: ValueRange | None
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

    def __init__(self, path: KeyPath) -> None:
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
                self._numbers.append(_as_floats(some))
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
        """Return the most frequent type beside null, one name for all numbers; empty without values."""
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

    def _all_lengths(self) -> ValueLengths | None:
        name = self._usual()
        if name not in self._lengths:
            return None
        lengths = np.sort(np.concatenate(self._lengths[name]))
        self._lengths[name] = [lengths]
        ranks = [-(-lengths.size * percent // 100) - 1 for percent in (50, 99)]
        p50, p99 = lengths[ranks].tolist()
        return ValueLengths(_UNITS[name], float(lengths.mean()), int(lengths[0]), p50, p99, int(lengths[-1]))

    def _all_numbers(self) -> ValueRange | None:
        if self._usual() != _NUMBER:
            return None
        numbers = np.concatenate(self._numbers)
        self._numbers = [numbers]
        finite = numbers[np.isfinite(numbers)]
        if not finite.size:
            return None
        # Halves first: the sum of large numbers may be beyond the largest float.
        mean = float((finite / finite.size).sum())
        return ValueRange(float(finite.min()), mean, float(finite.max()))


def _as_floats(numbers: Sequence[Any]) -> NDArray[np.float64]:
    """Return numbers as floats; integers beyond the largest float as infinities."""
    try:
        return np.array(numbers, np.float64)
    except OverflowError:
        return np.array(list(map(_as_float, numbers)), np.float64)


def _as_float(value: float) -> float:
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


@dataclass(frozen=True, slots=True)
class Statistics(Sampled):
    """The keys of sampled records; while the work goes on, those of the sample's beginning."""

    keys: tuple[KeyFacts, ...]
    """The facts of each key, in the order in which they were first seen; the record itself comes first."""

    left_out: int
    """The number of keys without facts: more than 500 were seen."""

    shapes: tuple[tuple[tuple[str, ...], Share], ...]
    """The sets of keys that records have at their top, the most frequent first, at most 10."""

    corrupt: Share
    corrupt_rows: tuple[int, ...]
    """The first corrupt rows that were met, at most 20."""

    holes: Share

    def document(self) -> dict[str, Any]:
        """Return the statistics as a JSON-safe dict."""
        return {
            **self.counts(),
            "keys": [key.document() for key in self.keys],
            "keys_left_out": self.left_out,
            "shapes": [{"keys": list(keys), **share.document()} for keys, share in self.shapes],
            "corrupt": {**self.corrupt.document(), "rows": list(self.corrupt_rows)},
            "holes": self.holes.document(),
        }


def statistics(node: Node, *, n: int, seed: int = 0) -> Generator[Statistics]:
    """Yield statistics while a sample is read; the last ones cover all of it.

    Functions of the pipeline are called for the rows of the sample.

    Args:
        node: the data, or a pipeline, with a length.
        n: the number of rows of the sample; all rows if there are fewer.
        seed: which sample.

    Raises:
        EndlessDataset: the node has no length.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> records = sk.from_sequence([{"id": 1, "lang": "en"}, {"id": 2}])
        >>> *_, found = statistics(records._node, n=10)
        >>> [(key.path, key.present.in_words()) for key in found.keys[1:]], found.made_of
        ([(('id',), '100 %'), (('lang',), '50 %')], 'exact, from all 2 rows')
    """
    survey = _KeySurvey()
    return surveyed(node, survey.add, survey.facts, n=n, seed=seed)


class _KeySurvey:
    """Counts the keys of records, piece by piece."""

    def __init__(self) -> None:
        self._whole = self._corrupted = self._holes = 0
        self._tallies: dict[KeyPath, KeyTally] = {(): KeyTally(())}
        self._parents: Counter[KeyPath] = Counter()
        """For each path that ends in elements, the number of dicts among these."""
        self._left_out: set[KeyPath] = set()
        self._shapes: Counter[tuple[Any, ...]] = Counter()
        """Records by their keys in the order of each."""
        self._corrupt: list[int] = []

    def add(self, rows: Sequence[int], records: Sequence[Any]) -> None:
        """Count the keys of some records."""
        corrupt = [
            row for row, record in zip(rows, records, strict=True) if isinstance(record, CorruptRecord)
        ]
        self._corrupt += corrupt[: _MOST_EXAMPLES - len(self._corrupt)]
        whole = [record for _, record in whole_of(rows, records)]
        self._whole += len(whole)
        self._corrupted += len(corrupt)
        self._holes += len(records) - len(whole) - len(corrupt)
        self._shapes.update(tuple(record) for record in whole if type(record) is dict)
        self._descend((), whole)

    def facts(self, read: Sampled) -> Statistics:
        """Return the facts of what was counted."""
        exact, whole = read.exact, self._whole
        by_keys: Counter[frozenset[str]] = Counter()
        for keys, count in self._shapes.items():
            by_keys[frozenset(map(str, keys))] += count
        shapes = [(tuple(sorted(keys)), count) for keys, count in by_keys.most_common(_MOST_SHAPES)]
        return Statistics(
            read.done,
            read.of,
            read.size,
            read.seed,
            keys=tuple(
                tally.facts(self._could_have(path, whole), exact=exact)
                for path, tally in self._tallies.items()
            ),
            left_out=len(self._left_out),
            shapes=tuple((keys, share_of(count, whole, exact=exact)) for keys, count in shapes),
            corrupt=share_of(self._corrupted, read.done, exact=exact),
            corrupt_rows=tuple(self._corrupt),
            holes=share_of(self._holes, read.done, exact=exact),
        )

    def _could_have(self, path: KeyPath, records: int) -> int:
        """Return the number of records that could have a key; below lists, of elements."""
        if None not in path:
            return records
        last = len(path) - path[::-1].index(None)
        return self._tallies[path].count if last == len(path) else self._parents[path[:last]]

    def _descend(self, path: KeyPath, values: Sequence[Any]) -> None:
        if not values or not self._counts(path):
            return
        self._tallies[path].add(values)
        if len(path) >= _MOST_DEPTH:
            return
        dicts = [value for value in values if type(value) is dict]
        if path and path[-1] is None:
            self._parents[path] += len(dicts)
        for key, below in _columns(dicts).items():
            self._descend((*path, str(key)), below)
        lists = [value[:_ELEMENTS] for value in values if type(value) is list or type(value) is tuple]
        self._descend((*path, None), [element for some in lists for element in some])

    def _counts(self, path: KeyPath) -> bool:
        """Return True if the values of a path are counted."""
        if path in self._tallies:
            return True
        if len(self._tallies) > _MOST_KEYS:
            if len(self._left_out) < 100 * _MOST_KEYS:
                self._left_out.add(path)
            return False
        self._tallies[path] = KeyTally(path)
        return True


def _columns(dicts: Sequence[dict[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the values of each key; dicts with the same keys in one order are taken apart together."""
    groups: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for each in dicts:
        groups.setdefault(tuple(each), []).append(each)
    out: dict[Any, list[Any]] = {}
    for keys, some in groups.items():
        for key, values in zip(keys, zip(*map(dict.values, some), strict=True), strict=True):
            out.setdefault(key, []).extend(values)
    return out


MISSING, EMPTY = "missing", "empty"
"""The names of the rows without the key, and of those with an empty value, beside the names of types."""

_MOST_VALUES = 50


@dataclass(frozen=True, slots=True)
class FieldFacts(Sampled):
    """The values of one key in a sample; while the work goes on, in the beginning of the sample."""

    key: KeyFacts
    """``present`` is the share of the records that have the key."""

    lengths: Histogram | None
    numbers: Histogram | None
    rows: Mapping[str, tuple[int, ...]]
    """Rows of the sample, at most 20 each: by the name of a type, ``"missing"`` and ``"empty"``."""

    corrupt: Share

    def document(self) -> dict[str, Any]:
        """Return the facts as a JSON-safe dict."""
        return {
            **self.counts(),
            **self.key.document(),
            "histograms": {
                "lengths": None if self.lengths is None else self.lengths.document(),
                "numbers": None if self.numbers is None else self.numbers.document(),
            },
            "examples": {name: list(rows) for name, rows in self.rows.items()},
            "corrupt": self.corrupt.document(),
        }


def field(node: Node, path: KeyPath, *, n: int, seed: int = 0) -> Generator[FieldFacts]:
    """Yield the facts of a key while a sample is read; the last ones cover all of it.

    Functions of the pipeline are called for the rows of the sample.

    Args:
        node: the data, or a pipeline, with a length.
        path: the key, as `path_of` returns it.
        n: the number of rows of the sample; all rows if there are fewer.
        seed: which sample.

    Raises:
        EndlessDataset: the node has no length.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> *_, found = field(sk.from_sequence([{"id": 1}, {"id": "2"}, {}])._node, ("id",), n=9)
        >>> found.key.present.in_words(), sorted(found.rows.items())
        ('67 %', [('int', (0,)), ('missing', (2,)), ('str', (1,))])
    """
    survey = _FieldSurvey(path)
    return surveyed(node, survey.add, survey.facts, n=n, seed=seed)


class _FieldSurvey:
    """Counts the values of one key, piece by piece."""

    def __init__(self, path: KeyPath) -> None:
        self._whole = self._with = 0
        self._path = path
        self._tally = KeyTally(path)
        self._rows: dict[str, list[int]] = {}

    def add(self, rows: Sequence[int], records: Sequence[Any]) -> None:
        """Count the values of some records."""
        found: list[Any] = []
        for row, record in whole_of(rows, records):
            values = values_at(record, self._path)
            self._whole += 1
            self._with += bool(values)
            self._note(row, values)
            found += values
        if found:
            self._tally.add(found)

    def facts(self, read: Sampled) -> FieldFacts:
        """Return the facts of what was counted."""
        exact = read.exact
        key = self._tally.facts(max(self._whole, self._tally.count), exact=exact, top=_MOST_VALUES)
        lengths, numbers = self._tally.histograms()
        return FieldFacts(
            read.done,
            read.of,
            read.size,
            read.seed,
            replace(key, present=share_of(self._with, self._whole, exact=exact)),
            lengths,
            numbers,
            {name: tuple(sorted(rows)) for name, rows in self._rows.items()},
            share_of(read.done - self._whole, read.done, exact=exact),
        )

    def _note(self, row: int, values: Sequence[Any]) -> None:
        """Note a row under each name that its values have."""
        names = set(map(type_name, values)) if values else {MISSING}
        if any(_is_empty(value) for value in values):
            names.add(EMPTY)
        for name in names:
            examples = self._rows.setdefault(name, [])
            if len(examples) < _MOST_EXAMPLES:
                examples.append(row)


def _is_empty(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return not value.size
    return isinstance(value, str | bytes | list | tuple | dict) and not value
