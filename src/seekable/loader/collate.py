"""Makes one batch from a list of records, or from columns.

A collate function gets the list of the records of a batch. One with an attribute ``columnar`` that is true
gets columns instead, where the dataset decodes tables as ``"numpy"`` (a dict of arrays and lists) or
``"arrow"`` (a record batch), which are made without making records first. The default collate function is
such a one, and so is a function that ``functools.wraps`` or ``functools.partial`` makes of it. Any other
function around the default gets records, and returns batches of the same types.
`FillCollate` is for records of which some values are None, ``collate.varlen`` for packed samples.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import numpy as np

from seekable._arguments import checked_choice, checked_count, checked_function
from seekable.errors import BadValue, InvalidArgument, NothingPassed, WrongType
from seekable.formats.table import plugged

if TYPE_CHECKING:
    from types import UnionType

__all__ = ["FillCollate", "collate", "takes_columns"]


_BOOLEANS = bool | np.bool_

_INTEGERS = int | np.integer

_NUMBERS = int | float | complex | np.number | np.bool_

_TIMES = np.datetime64 | np.timedelta64


def varlen(pad_documents: int | None = None, *, key: str = "tokens") -> Callable[[Any], dict[str, Any]]:
    """Return a collate function that joins packed samples to one flat sequence of pieces of documents.

    Its batches are what attention kernels with ``cu_seqlens`` take (``flash_attn_varlen_func``). For B
    samples of L tokens a batch is a dict with

    - ``tokens``: the tokens of all samples, B * L of them, in the dtype of the samples,
    - ``cu_seqlens``: int32, where each piece starts in these, then their number: k + 1 entries for k pieces,
    - ``max_seqlen``: the number of tokens of the longest piece, an int,
    - ``positions``: int32, those of the samples, or counted from 0 in each piece,
    - labels, loss masks and every other array with one value a token, flat like the tokens. What else the
      samples have is collated as ``sk.collate`` does.

    Pieces come from ``segment_ids``, else from ``cu_seqlens`` of each sample; without both a sample is one
    piece (``windows``). No piece reaches beyond its sample. The padding of a sample is a piece of its own, so
    the last entry of ``cu_seqlens`` is the number of tokens: kernels compute every row of their output, and
    no document attends to padding. ``loss_mask`` is 0 there.

    Args:
        pad_documents: the number of pieces that ``cu_seqlens`` is filled up to with the number of tokens, for
            kernels that are compiled for one shape; it then has ``pad_documents + 1`` entries.
        key: the key of the tokens in the samples.

    Raises:
        WrongType: ``pad_documents`` is not an integer, or ``key`` not a string.
        InvalidArgument: ``pad_documents`` is less than 1; later, a batch has more pieces than that.

    Example:
        >>> flat = varlen(pad_documents=4)
        >>> sample = {"tokens": np.array([5, 6, 7, 8]), "segment_ids": np.array([1, 1, 1, 2])}
        >>> batch = flat([sample, sample])
        >>> batch["cu_seqlens"].tolist(), batch["max_seqlen"], batch["positions"].tolist()
        ([0, 3, 4, 7, 8], 3, [0, 1, 2, 0, 0, 1, 2, 0])
    """
    if pad_documents is not None:
        pad_documents = checked_count("pad_documents", pad_documents, least=1)
    if not isinstance(key, str):
        raise WrongType(f"varlen() takes key= as the name of the tokens in samples (got {key!r})")
    made: Callable[[Any], dict[str, Any]] = plugged("packing").Varlen(
        pad_documents=pad_documents, key=key, rest=collate
    )
    return made


class _DefaultCollate(Protocol):
    """The function ``collate`` with its attributes."""

    columnar: bool
    varlen: Callable[..., Callable[[Any], dict[str, Any]]]

    def __call__(self, records: Any) -> Any:
        """Return a batch of records or columns."""


def _with_attributes(function: Callable[[Any], Any]) -> _DefaultCollate:
    collate = cast("_DefaultCollate", function)
    collate.columnar = True
    collate.varlen = varlen
    return collate


@_with_attributes
def collate(records: Any) -> Any:
    """Return a batch: dicts and tuples by their parts, numbers and arrays stacked, anything else as a list.

    Dicts become a dict of collated values, tuples of one length a tuple of collated parts, recursively.
    Numbers, and arrays of one shape, become an array with a first axis of ``len(records)``, record batches of
    Arrow become one. Everything else (strings, lists, arrays of different shapes, a mixture of types) stays
    the list it is.

    Args:
        records: a list of records; or columns: a record batch of Arrow, which is the batch, or a dict of
            arrays and lists, of which the lists are collated.

    Raises:
        InvalidArgument: dicts with different keys; the message names them.

    Example:
        >>> collate([{"text": "a", "id": 1}, {"text": "b", "id": 2}])
        {'text': ['a', 'b'], 'id': array([1, 2])}
    """
    if isinstance(records, dict):
        return {
            name: collate(column) if isinstance(column, list) else column for name, column in records.items()
        }
    if not isinstance(records, list) or not records:
        return records
    first, kinds = type(records[0]), {*map(type, records)}
    if issubclass(first, dict) and _all_are(kinds, dict):
        return _collate_dicts(records)
    if first.__name__ == "RecordBatch" and first.__module__.startswith("pyarrow"):
        import pyarrow as pa

        return pa.concat_batches(records)
    if kinds == {tuple} and len({*map(len, records)}) == 1:
        return tuple(collate(list(part)) for part in zip(*records, strict=True))
    return _stacked(records, kinds)


def takes_columns(function: Callable[[Any], Any]) -> bool:
    """Return True if a collate function declares that it takes columns: its ``columnar`` is true.

    Example:
        >>> takes_columns(collate), takes_columns(functools.partial(collate)), takes_columns(list)
        (True, True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    return bool(getattr(function, "columnar", False))


def _collate_dicts(records: list[dict[Any, Any]]) -> dict[Any, Any]:
    keys = records[0].keys()
    for i, record in enumerate(records):
        if record.keys() != keys:
            missing, extra = sorted(map(repr, keys - record.keys())), sorted(map(repr, record.keys() - keys))
            differs = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"adds {', '.join(extra)}"] * bool(
                extra
            )
            raise InvalidArgument(
                f"the records of a batch must have the same keys to be collated: beside record 0, record {i} "
                f"{' and '.join(differs)}; map them to the same keys, or pass collate=list"
            )
    return {key: collate([*map(operator.itemgetter(key), records)]) for key in keys}


def _all_are(kinds: Collection[type], of: type | UnionType) -> bool:
    first, *others = kinds  # nearly always there is one
    return issubclass(first, of) and (not others or all(issubclass(kind, of) for kind in others))


def _stacked(records: list[Any], kinds: Collection[type]) -> Any:
    """Return records of some kinds as an array; as they are where numpy would change one."""
    first = records[0]
    if isinstance(first, np.ndarray) and _all_are(kinds, np.ndarray):
        alike = all(record.shape == first.shape for record in records)
        return np.stack(records) if alike else records
    if isinstance(first, _TIMES) and len(kinds) == 1:
        times = np.array(records)
        # Of two units numpy takes the finer one, in which a time may not fit.
        return times if all(record.dtype == times.dtype for record in records) else records
    if not _all_are(kinds, _NUMBERS):
        return records
    made = np.array(records)
    return made if _unchanged(made, records, kinds) else records


def _unchanged(made: Any, records: list[Any], kinds: Collection[type]) -> bool:
    """Return True if numpy changed no number.

    Integers beyond 64 bits become objects, those beyond 63 become floats, those beyond 2**53 beside a float
    lose digits, and booleans beside numbers become numbers.
    """
    if made.dtype == object or (len(kinds) > 1 and len({issubclass(kind, _BOOLEANS) for kind in kinds}) > 1):
        return False
    if made.dtype.kind != "f" or not any(issubclass(kind, _INTEGERS) for kind in kinds):
        return True
    if _all_are(kinds, _INTEGERS):
        return False
    changed = (isinstance(record, int) and int(made[i]) != record for i, record in enumerate(records))
    return not any(changed)


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
        WrongType: ``values`` is not a dict.

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
            WrongType: ``values`` is not a dict, or ``then`` not a function.
        """
        checked_choice("none", self.none, ("fill", "drop", "error"))
        checked_function("then", self.then)
        if not isinstance(self.values, Mapping):
            raise WrongType(f"values must be a dict of columns and values (got {self.values!r})")

    def __call__(self, records: list[Any]) -> Any:
        """Return a batch of some records, as ``then`` makes it.

        Raises:
            BadValue: a column has None, and there is no value for it, or ``none="error"``.
            NothingPassed: every record of the batch has None, and ``none="drop"``.
            WrongType: a record is not a dict.
        """
        for record in records if isinstance(records, list | tuple) else [records]:
            if not isinstance(record, dict):
                raise WrongType(f"FillCollate takes records that are dicts (got a {type(record).__name__})")
        if self.none != "drop":
            return self.then([self._filled(i, record) for i, record in enumerate(records)])
        kept = [record for record in records if None not in map(_none_or_one, record.values())]
        if records and not kept:
            raise NothingPassed(
                f"each of the {len(records)} records of a batch has None somewhere, and "
                f"FillCollate(none='drop') leaves them out: fill them, or filter them before, "
                f"where=[(column, 'is not null')]"
            )
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
            raise BadValue(f"the column {lost[0]!r} is None in record {i} of a batch: {way}")
        return {name: self.values[name] if value is None else value for name, value in made.items()}


def _none_or_one(value: Any) -> Any:
    # ``None in values`` would compare arrays with None, element by element.
    return None if value is None else 1
