"""Batches of records of which some values are None."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from seekable.errors import BadValue, InvalidArgument, NothingPassed, WrongType
from seekable.loader.collate import collate

__all__ = ["FillCollate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FillCollate:
    """A ``collate`` for ``Loader``, or a ``collate_fn`` for PyTorch, that fills, drops or refuses None.

    ``ds.fill(...)`` fills None in the dataset. This leaves the dataset unchanged, and can leave records out.

    Args:
        none: ``"fill"`` puts a value in the place of each None, ``"drop"`` leaves out the records that have
            one, ``"error"`` refuses them.
        values: by column, the value for each None, and for records that lack the column.
        then: makes the batch of the records: a ``collate`` function of yours, or of PyTorch.

    Raises:
        InvalidArgument: ``none`` is none of these.
        WrongType: ``values`` is no dict.

    Example:
        >>> batch = [{"n": 1, "text": None}, {"n": 2, "text": "b"}]
        >>> FillCollate(values={"text": ""})(batch)
        {'n': array([1, 2]), 'text': ['', 'b']}
        >>> FillCollate(none="drop")(batch)
        {'n': array([2]), 'text': ['b']}
    """

    none: Literal["fill", "drop", "error"] = "fill"
    values: Mapping[str, Any] = field(default_factory=dict)
    then: Callable[[list[Any]], Any] = collate

    def __post_init__(self) -> None:
        """Check the arguments.

        Raises:
            InvalidArgument: ``none`` has an unknown value.
            WrongType: ``values`` is no dict.
        """
        if self.none not in ("fill", "drop", "error"):
            message = f"none must be 'fill', 'drop' or 'error' (got {self.none!r})"
            raise InvalidArgument(message)
        if not isinstance(self.values, Mapping):
            message = f"values must be a dict of columns and values (got {self.values!r})"
            raise WrongType(message)

    def __call__(self, records: list[Any]) -> Any:
        """Return a batch of some records, as ``then`` makes it.

        Raises:
            BadValue: a column has None, and there is no value for it, or ``none="error"``.
            NothingPassed: every record of the batch has None, and ``none="drop"``.
            WrongType: a record is no dict.
        """
        for record in records:
            if not isinstance(record, dict):
                message = f"FillCollate takes records that are dicts (got a {type(record).__name__})"
                raise WrongType(message)
        if self.none != "drop":
            return self.then([self._filled(i, record) for i, record in enumerate(records)])
        kept = [record for record in records if None not in map(_none_or_one, record.values())]
        if records and not kept:
            message = (
                f"each of the {len(records)} records of a batch has None somewhere, and "
                f"FillCollate(none='drop') leaves them out: fill them, or filter them before, "
                f"where=[(column, 'is not null')]"
            )
            raise NothingPassed(message)
        return self.then(kept)

    def _filled(self, i: int, record: dict[str, Any]) -> dict[str, Any]:
        missing = [name for name in self.values if name not in record] if self.none == "fill" else []
        made = {**record, **dict.fromkeys(missing)} if missing else record
        empty = [name for name, value in made.items() if value is None]
        if not empty:
            return made
        lost = [name for name in empty if self.none == "error" or name not in self.values]
        if lost:
            way = "say what to fill with, values=" if self.none == "fill" else "fill or filter it before"
            message = f"the column {lost[0]!r} is None in record {i} of a batch: {way}"
            raise BadValue(message)
        return {name: self.values[name] if value is None else value for name, value in made.items()}


def _none_or_one(value: Any) -> Any:
    # ``None in values`` would compare arrays with None, element by element.
    return None if value is None else 1
