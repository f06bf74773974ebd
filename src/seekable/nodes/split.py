"""Splits: parts of a dataset that share out all of its rows, in exact sizes, in stable ones, or by label.

In a stable split each part owns the same run of slots in every block of 1,000 rows. So a row's part depends
on its number, the shares and the seed, and an appended record never moves an old one.

In a stratified split the rows of each label are dealt by themselves, by their numbers among the rows of that
label: each part has its share of every label.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, SupportsFloat, final

import numpy as np

from seekable._cached import cached
from seekable.errors import BadValue, InvalidArgument, MissingColumn, WrongType
from seekable.nodes.bases import Ascending, integer_of
from seekable.nodes.columns.names import By, narrowed_to, value_by
from seekable.nodes.display import describe_place
from seekable.nodes.filter import Filter
from seekable.nodes.graph import HOLE, known_size, must_be_steady
from seekable.nodes.readahead import read_rows
from seekable.nodes.saved_rows import keep_unnamed
from seekable.nodes.sequence_source import SequenceSource
from seekable.order.apportionment import apportion
from seekable.order.dealing import BLOCK, Blocks, Deal, rows_before, rows_owned, whole_blocks
from seekable.parallel.map_ranges import execution_options, map_ranges
from seekable.parallel.progress import watched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.node import Node

__all__ = ["Split", "StableSplit", "split", "stable_split", "stratified"]

_ROUNDING = 1e-9
"""The tolerance of the sum of shares that were written as decimals, such as 1/3."""

Parts = Mapping[Any, float | None]
"""The share or the number of rows of each part; None for the rest."""


def split(child: Node, parts: Parts, seed: int) -> dict[Any, Node]:
    """Return the named parts of a dataset; see ``Dataset.split``."""
    size = known_size(child, "split()")
    must_be_steady(child, "split()")
    sizes = _numbers_of_rows(parts, size) if _is_in_rows(parts) else _sizes_of_shares(parts, size)
    deal = tuple(sizes.values())
    return {
        name: Split(child, seed=seed, part=name, number=number, sizes=deal)
        for number, name in enumerate(sizes)
    }


def _is_in_rows(parts: Parts) -> bool:
    """Return True if all parts are given by numbers of rows; integers that sum to 1 are shares.

    Raises:
        WrongType: ``parts`` is not a dict.
        InvalidArgument: there is no part, or more than one has None.

    Example:
        >>> _is_in_rows({"a": 500, "b": None}), _is_in_rows({"a": 0.5, "b": None}), _is_in_rows({"a": 1})
        (True, False, False)
    """
    if not isinstance(parts, Mapping):
        message = (
            f"shares must be a dict of names and shares, or of names and numbers of rows (got {parts!r})"
        )
        raise WrongType(message)
    if not parts:
        message = "shares must name at least one part (got none)"
        raise InvalidArgument(message)
    given = [value for value in parts.values() if value is not None]
    if len(given) < len(parts) - 1:
        message = f"one part at most gets the rest, by None (got {dict(parts)!r})"
        raise InvalidArgument(message)
    integers = all(isinstance(value, Integral) and not isinstance(value, bool) for value in given)
    return integers and (len(given) < len(parts) or sum(given) != 1 or min(given) < 0)


def _numbers_of_rows(parts: Parts, size: int) -> dict[Any, int]:
    """Return the row count of each part; rows that no part gets go to a part named None."""
    rows = {name: None if value is None else int(value) for name, value in parts.items()}
    for name, count in rows.items():
        if count is not None and count < 0:
            message = f"a number of rows must be at least 0 (got {count} for {name!r})"
            raise InvalidArgument(message)
    rest = size - sum(count or 0 for count in rows.values())
    if rest < 0:
        message = f"there are {size:,} records, and the parts take {size - rest:,} (got {dict(parts)!r})"
        raise InvalidArgument(message)
    if None not in rows.values() and rest:
        rows[None] = None
    return {name: rest if count is None else count for name, count in rows.items()}


def _sizes_of_shares(parts: Parts, size: int) -> dict[Any, int]:
    exact = _exact_shares(parts)
    return dict(zip(exact, apportion(list(exact.values()), size), strict=True))


def _exact_shares(parts: Parts) -> dict[Any, Fraction]:
    """Return the share of each part as the decimal number that Python prints for it.

    Raises:
        WrongType: a share is not a number.
        InvalidArgument: a share is not from 0 to 1, or they do not sum to 1.

    Example:
        >>> _exact_shares({"train": None, "test": 0.1})
        {'train': Fraction(9, 10), 'test': Fraction(1, 10)}
    """
    shares = {name: None if share is None else _share(name, share) for name, share in parts.items()}
    total = sum(share or 0 for share in shares.values())
    rest = max(Fraction(1 - total), Fraction(0))
    if total - 1 > _ROUNDING or (None not in shares.values() and rest > _ROUNDING):
        message = f"shares must sum to 1 (got {dict(parts)!r}, which sum to {float(total)!r})"
        raise InvalidArgument(message)
    return {name: rest if share is None else share for name, share in shares.items()}


def _share(name: object, share: float) -> Fraction:
    if not isinstance(share, SupportsFloat):
        message = f"a share must be a number (got {share!r} for {name!r})"
        raise WrongType(message)
    if not 0 <= float(share) <= 1:
        message = (
            f"a share must be from 0 to 1 (got {share!r} for {name!r}); numbers of rows are integers, for "
            f"all parts"
        )
        raise InvalidArgument(message)
    return Fraction(repr(float(share)))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Split(Ascending):
    """The rows of one part, ascending: blocks of 1,000 are dealt to parts with given sizes."""

    child: Node
    seed: int
    part: Any
    """The name of the part, which has no effect on its rows."""

    number: int
    """The index of the part among all parts."""

    sizes: tuple[int, ...]
    """The number of rows of each part; they sum to the child's size."""

    kind: ClassVar[str] = "exact_split"
    counted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise an error for a child that has another length or is not steady."""
        must_be_steady(self.child, "split()")
        size = known_size(self.child, "split()")
        if sum(self.sizes) != size:
            message = f"the sizes of the parts sum to {sum(self.sizes):,}, and there are {size:,} records"
            raise InvalidArgument(message)

    @property
    def size(self) -> int:
        """The number of the part's rows."""
        return self.sizes[self.number]

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the seed, the sizes of all parts and the number of this one."""
        return {"seed": self.seed, "sizes": list(self.sizes), "number": self.number}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> Split:
        """Return the part with these arguments, named by its number."""
        number = integer_of(arguments, "number")
        seed, sizes = integer_of(arguments, "seed"), tuple(arguments["sizes"])
        return cls(children[0], seed=seed, part=number, number=number, sizes=sizes)

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``split``."""
        return f"{children[0]}.split(..., seed={self.seed})[{self.part!r}]"

    def below(self, rows: Int64s) -> Int64s:
        """Return the child's rows that some rows of the part are."""
        return self._deal.rows(self.number, rows)

    def before(self, rows: Int64s) -> Int64s:
        """Count the part's rows before each of some rows of the child."""
        return self._deal.before(self.number, rows)

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one row."""
        epoch, row = divmod(position, self.size)
        return 0, epoch * self._child_size + self._deal.row_one(self.number, row)

    @cached
    def _deal(self) -> Deal:
        return _deal(self.sizes, self.seed)


@lru_cache(maxsize=16)
def _deal(sizes: tuple[int, ...], seed: int) -> Deal:
    """Return the deal that all parts of a split share."""
    return Deal(sizes, seed)


def stable_split(child: Node, shares: Mapping[Any, float | None], seed: int) -> dict[Any, Node]:
    """Return the named parts of a dataset; see ``Dataset.split(stable=True)``."""
    if _is_in_rows(shares):
        message = (
            f"split(stable=True) takes shares that sum to 1 (got {dict(shares)!r}): a part of a given number "
            f"of rows would lose old rows where some are appended"
        )
        raise InvalidArgument(message)
    exact = _exact_shares(shares)
    bounds = (0, *accumulate(apportion(list(exact.values()), BLOCK)))
    return {
        name: StableSplit(child, seed=seed, part=name, start=bounds[i], stop=bounds[i + 1])
        for i, name in enumerate(exact)
    }


@final
@dataclass(frozen=True, eq=False, repr=False)
class StableSplit(Ascending):
    """The rows, ascending, whose slots ``s`` in their blocks of 1,000 are ``start <= s < stop``."""

    child: Node
    seed: int
    part: Any
    """The name of the part, which has no effect on its rows."""

    start: int
    stop: int

    kind: ClassVar[str] = "split"

    def __post_init__(self) -> None:
        """Raise EndlessDataset without a length, InvalidArgument for a child that is not steady."""
        known_size(self.child, "split()")
        must_be_steady(self.child, "split()")

    @cached
    def size(self) -> int:
        """The number of the part's rows in whole blocks and in the last, short block."""
        blocks, rest = divmod(self._child_size, BLOCK)
        return blocks * self._share + int(self._counts[self._blocks.index(blocks), rest])

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """Return the seed and the slots; the part's name has no effect on its rows."""
        return {"seed": self.seed, "start": self.start, "stop": self.stop}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], children: tuple[Node, ...]) -> StableSplit:
        """Return the part with these arguments, named by its slots."""
        seed, start, stop = (integer_of(arguments, name) for name in ("seed", "start", "stop"))
        return cls(children[0], seed=seed, part=f"{start}:{stop}", start=start, stop=stop)

    def shown(self, children: Sequence[str]) -> str:
        """Return the expression of the call of ``split``."""
        return f"{children[0]}.split(..., seed={self.seed}, stable=True)[{self.part!r}]"

    def below(self, rows: Int64s) -> Int64s:
        """Return the child's rows that some rows of the part are."""
        block, place = rows // self._share, rows % self._share
        found: Int64s = block * BLOCK + self._rows[self._blocks.indices(block), place]
        return found

    def route_one(self, position: int) -> tuple[int, int]:
        """Return slot 0 and the child's position of one row."""
        epoch, row = divmod(position, self.size)
        block, place = divmod(row, self._share)
        found = int(self._rows[self._blocks.index(block), place])
        return 0, epoch * self._child_size + block * BLOCK + found

    def before(self, rows: Int64s) -> Int64s:
        """Count the part's rows before each of some rows of the child."""
        block, row = np.divmod(rows, BLOCK)
        counts: Int64s = self._counts[self._blocks.indices(block), row].astype(np.int64)
        return block * self._share + counts

    @property
    def _share(self) -> int:
        return self.stop - self.start

    @property
    def _blocks(self) -> Blocks:
        return whole_blocks(self.seed)

    @property
    def _rows(self) -> NDArray[np.int16]:
        return rows_owned(self._blocks, self.start, self.stop)

    @property
    def _counts(self) -> NDArray[np.int16]:
        return rows_before(self._blocks, self.start, self.stop)


def stratified(
    child: Node,
    shares: Mapping[Any, float | None],
    seed: int,
    *,
    by: By,
    stable: bool,
) -> dict[Any, Node]:
    """Return the named parts of a dataset, each label split separately; see ``Dataset.split``."""
    deal = stable_split if stable else split
    deal(child, shares, seed)  # A dataset without rows has no label at which the arguments would be checked.
    if _is_in_rows(shares):
        message = (
            f"split(by=) takes shares that sum to 1, by which each value is split (got {dict(shares)!r}): "
            f"divide the numbers of rows by {known_size(child, 'split(by=)'):,}"
        )
        raise InvalidArgument(message)
    size = known_size(child, "split(by=)")
    job = _Labels(narrowed_to(child, by, "split(by=)"), by)
    labels = _numbered(job, size)
    name = by if isinstance(by, str) else getattr(by, "__qualname__", type(by).__qualname__)
    owners = _owners(labels, lambda rows: deal(SequenceSource(range(rows), None), shares, seed))
    return {
        part: Filter(
            child,
            keep_unnamed([np.flatnonzero(owners == i).astype(np.int64)]),
            f"the part {part!r} of split(..., seed={seed}, by={name})",
        )
        for i, part in enumerate(shares)
    }


def _numbered(job: _Labels, size: int) -> Int64s:
    """Return a number for the label of each row: int64."""
    numbers: dict[Any, int] = {}
    found = [np.empty(0, dtype=np.int64)]
    with (
        watched(None, task="reading labels", rows=size) as watch,
        contextlib.closing(map_ranges(job, size, using=execution_options(None, None, at_once=True))) as runs,
    ):
        for done, labels in runs:
            watch(done)
            found.append(
                np.array([numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.int64)
            )
    return np.concatenate(found)


def _owners(labels: Int64s, dealt: Callable[[int], Mapping[Any, Node]]) -> Int64s:
    """Return the index of the part that each row belongs to.

    Args:
        labels: a number for the label of each row.
        dealt: returns the parts of a number of rows.
    """
    owners = np.empty(labels.size, dtype=np.int64)
    order = np.argsort(labels, kind="stable")
    edges = np.flatnonzero(np.diff(labels[order], prepend=-1, append=labels.size))
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        rows = order[start:stop]
        for i, part in enumerate(dealt(rows.size).values()):
            own = part.plan(np.arange(part.size or 0, dtype=np.int64)).origins().rows
            owners[rows[own]] = i
    return owners


@dataclass(frozen=True, slots=True)
class _Labels:
    """A picklable job that returns the labels in a range of rows; a hole has its own label."""

    dataset: Node
    by: By

    def __call__(self, start: int, stop: int) -> list[Any]:
        found: list[Any] = []
        for _, records in read_rows(self.dataset, np.arange(start, stop, dtype=np.int64)):
            for record in records:
                try:
                    label = record if record is HOLE else value_by(record, self.by)
                    hash(label)
                except (MissingColumn, WrongType, TypeError) as error:
                    place = describe_place(self.dataset, start + len(found))
                    message = f"{place}: split(by={self.by!r}): {error}"
                    raise (MissingColumn if isinstance(error, MissingColumn) else BadValue)(
                        message
                    ) from error
                found.append(label)
        return found
