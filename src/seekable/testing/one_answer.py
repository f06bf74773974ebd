"""All ways to read the records of a dataset, and whether each gives the same answers.

An answer is a record, or the error that stands in its place: its class, its words, its file, row and byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import BadValue, CorruptRecord, SeekableError
from seekable.loader.arguments import Workers
from seekable.loader.loader import Loader
from seekable.testing.resume import same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seekable.dataset.dataset import Dataset

    Opening = Callable[..., Dataset]
    """Opens one dataset: as it comes, or with ``errors=``."""


__all__ = ["Answers", "Refused", "alone", "check", "difference"]


@dataclass(frozen=True, slots=True)
class Refused:
    """The error of a row, or of a dataset that cannot be opened."""

    kind: str
    """The name of the class of the error."""
    words: str
    """Its message."""
    place: tuple[str, int, int | None] | None
    """The file, the row and the byte of a corrupt record."""


Answers = dict[int, Any]
"""What rows give: a record, or Refused."""

_REFUSED = "refused"


def _refused(error: SeekableError) -> Refused:
    """Return what is compared of an error."""
    if isinstance(error, CorruptRecord) and isinstance(error.cause, BadValue):
        error = error.cause  # ``errors=`` takes a CorruptRecord alone
    place = (error.path, error.row, error.offset) if isinstance(error, CorruptRecord) else None
    return Refused(type(error).__name__, str(error), place)


def _instead(error: CorruptRecord) -> dict[str, Refused]:
    """Return what ``errors=`` delivers for a record: one with columns, as a table needs."""
    return {_REFUSED: _refused(error)}


def _answer_of(record: Any) -> Any:
    """Return the error that ``errors=`` was told of in the place of a record, or the record."""
    return record[_REFUSED] if isinstance(record, dict) and _REFUSED in record else record


def _numbered(records: Iterable[Any], rows: Sequence[int]) -> Answers:
    """Return the answers of rows, given their records."""
    return dict(zip(rows, map(_answer_of, records), strict=True))


def _records(batch: Any, count: int) -> list[Any]:
    """Return the records of a batch, which may be a list, a dict of arrays and lists, or a record batch."""
    if isinstance(batch, list):
        return list(map(_plain, batch))
    if isinstance(batch, dict):
        return [_plain({name: column[row] for name, column in batch.items()}) for row in range(count)]
    return [batch.slice(row, 1) for row in range(count)]


def _plain(record: Any) -> Any:
    """Return a record with Python's numbers in the place of numpy's: beside None a batch has those."""
    if not isinstance(record, dict):
        return record
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in record.items()}


def alone(ds: Dataset, rows: Sequence[int]) -> Answers:
    """Read rows one by one, in the order asked."""
    answers: Answers = {}
    for row in rows:
        try:
            answers[row] = ds[row]
        except SeekableError as error:
            answers[row] = _refused(error)
    return answers


def _delivered(opening: Opening, world_size: int, **options: Any) -> list[Any]:
    """Return what the loaders of some ranks deliver: all records but those in a last, incomplete batch."""
    ds = opening(errors=_instead)
    records: list[Any] = []
    for rank in range(world_size):
        loader = Loader(
            ds,
            global_batch_size=2 * world_size,
            rank=rank,
            world_size=world_size,
            collate=list,
            end="drop",
            epochs=1,
            **options,
        )
        records += [_answer_of(record) for batch in loader for record in batch]
        loader.close()
    return records


def check(opening: Opening, *, fresh: int = 3) -> Answers | Refused:
    """Read a dataset in every way, fail where two ways differ, and return the answers.

    Args:
        opening: opens the dataset; takes ``errors``.
        fresh: how many rows are also read as the first of a dataset.

    Raises:
        AssertionError: two ways differ; the message names them and the row.
    """
    try:
        ds = opening()
    except SeekableError as error:
        return _refused(error)
    size = len(ds)
    rows = range(size)
    whole = _numbered(opening(errors=_instead), rows)
    good = [row for row in rows if not isinstance(whole[row], Refused)]
    ways = {
        "alone": alone(ds, rows),
        "alone, backwards": alone(opening(), rows[::-1]),
        "a second time": alone(ds, rows),
        "a batch": _numbered(opening(errors=_instead)[list(rows[::-1])], rows[::-1]),
    }
    for row in (*rows[:: max(1, size // fresh)], *rows[-1:]):
        ways[f"row {row} first"] = alone(opening(), [row])
    for name, answers in ways.items():
        _check(difference(whole, answers), f"by iterating, and {name}")
    plain = {row: _plain(whole[row]) for row in good}
    _check(
        difference(plain, _numbered(_records(ds[good], len(good)), good)), "alone, and a batch of good rows"
    )
    _check_columns(opening, whole, good)
    for world_size, options in ((1, {"workers": Workers(2, type="thread")}), (2, {})):
        records = _delivered(opening, world_size, **options)
        due = [whole[row] for row in rows[: size - size % (2 * world_size)]]
        if not _same_in_any_order(records, due):
            message = f"{world_size} ranks with {options}: {records!r:.500} and {due!r:.500}"
            raise AssertionError(message)
    return whole


def _check_columns(opening: Opening, whole: Answers, good: Sequence[int]) -> None:
    """Check that single columns are those of the whole records, where these are read at all."""
    names = [name for row in good[:1] if isinstance(whole[row], dict) for name in whole[row]]
    for name in names:
        try:
            column = opening(columns=[name])
        except SeekableError:
            continue
        for row in good:
            if not same(column[row].get(name), whole[row].get(name)):
                _check(
                    f"{column[row].get(name)!r} and {whole[row].get(name)!r}", f"column {name!r} of row {row}"
                )


def _check(found: str | None, where: str) -> None:
    if found is not None:
        message = f"{where}: {found}"
        raise AssertionError(message)


def difference(one: Answers, other: Answers) -> str | None:
    """Return the first row whose answers differ, in words, or None."""
    for row in other:
        if not same(one.get(row), other[row]):
            return f"row {row}: {one.get(row)!r} and {other[row]!r}"
    return None


def _same_in_any_order(some: list[Any], others: list[Any]) -> bool:
    left = list(others)
    for each in some:
        at = next((at for at, other in enumerate(left) if same(each, other)), None)
        if at is None:
            return False
        del left[at]
    return not left
