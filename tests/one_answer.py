"""All ways to read the records of a dataset, and whether each gives the same answers.

An answer is a record, or the error that stands in its place: its class, its words, its file, row and byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import seekable as sk
from seekable.errors import SeekableError
from seekable.testing.same import same

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Opening = Callable[..., sk.Dataset]
    """Opens one dataset: with ``errors=`` or ``index_dir=``, or as it comes."""


@dataclass(frozen=True)
class Refused:
    """The error that a row gives."""

    kind: str
    words: str
    place: tuple[str, int, int | None] | None


Answers = dict[int, Any]
"""What rows give: a record, or Refused."""


def refused(error: SeekableError) -> Refused:
    place = (error.path, error.row, error.offset) if isinstance(error, sk.CorruptRecord) else None
    return Refused(type(error).__name__, str(error), place)


def alone(ds: sk.Dataset, rows: Sequence[int]) -> Answers:
    """Read rows one by one, in the order asked."""
    answers: Answers = {}
    for row in rows:
        try:
            answers[row] = ds[row]
        except SeekableError as error:
            answers[row] = refused(error)
    return answers


def by_fresh_datasets(opening: Opening, rows: Sequence[int]) -> Answers:
    """Read each row as the first one of a dataset."""
    answers: Answers = {}
    for row in rows:
        answers.update(alone(opening(), [row]))
    return answers


def delivered(opening: Opening, world_size: int, **options: Any) -> list[Any]:
    """Return the records that the loaders of some ranks deliver: all but a last part of a batch."""
    ds = opening(errors=refused)
    records: list[Any] = []
    for rank in range(world_size):
        loader = sk.Loader(
            ds,
            global_batch_size=2 * world_size,
            rank=rank,
            world_size=world_size,
            collate=list,
            end="drop",
            epochs=1,
            **options,
        )
        records += [record for batch in loader for record in batch]
        loader.close()
    return records


def difference(one: Answers, other: Answers) -> str | None:
    """Return the first row whose answers differ, or None."""
    for row in other:
        if not same(one.get(row), other[row]):
            return f"row {row}: {one.get(row)!r} and {other[row]!r}"
    return None


def check(opening: Opening, *, fresh: int = 3) -> Answers | Refused:
    """Read a dataset in every way, fail where two ways differ, and return the answers.

    Args:
        opening: opens the dataset; takes ``errors`` and ``index_dir``.
        fresh: the number of rows that are also read as the first of a dataset.
    """
    try:
        ds = opening()
    except SeekableError as error:
        return refused(error)
    size = len(ds)
    rows = range(size)
    replacing = opening(errors=refused)
    whole = dict(enumerate(replacing))
    assert len(whole) == size
    ways = {
        "alone": alone(ds, rows),
        "alone, backwards": alone(opening(), rows[::-1]),
        "a second time": alone(ds, rows),
        "first": by_fresh_datasets(opening, [*rows[:: max(1, size // fresh)], *rows[-1:]]),
        "a batch": dict(zip(rows[::-1], opening(errors=refused)[list(rows[::-1])], strict=True)),
    }
    good = [row for row in rows if not isinstance(whole[row], Refused)]
    ways["a batch of good rows"] = dict(zip(good, ds[good], strict=True))
    for name, answers in ways.items():
        assert (found := difference(whole, answers)) is None, f"by iterating, and {name}: {found}"
    for world_size, options in ((1, {"workers": 2, "worker_type": "thread"}), (2, {})):
        records = delivered(opening, world_size, **options)
        due = [whole[row] for row in rows[: size - size % (2 * world_size)]]
        assert same_in_any_order(records, due), f"{world_size} ranks with {options}"
    return whole


def same_in_any_order(some: list[Any], others: list[Any]) -> bool:
    left = list(others)
    for each in some:
        at = next((at for at, other in enumerate(left) if same(each, other)), None)
        if at is None:
            return False
        del left[at]
    return not left
