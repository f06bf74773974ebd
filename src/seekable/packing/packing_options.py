"""The choice how documents fill samples, as a value: ``sk.Packing``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, final

from seekable._arguments import (
    checked_choice,
    checked_count,
    explains_fields,
)
from seekable.errors import InvalidArgument

__all__ = ["Packing", "checked_packing"]


@final
@explains_fields("sk.Packing")
@dataclass(frozen=True, slots=True)
class Packing:
    """A ``method`` for ``Dataset.pack``: it says how documents fill samples.

    Args:
        method: ``"concat"`` puts documents end to end and cuts them; a tail shorter than a sample is left
            out, another one each epoch. ``"best_fit"`` cuts no document that is not longer than a sample, and
            pads samples.
        order: how ``"concat"`` orders documents. ``"table"`` permutes them all, which takes memory for each;
            ``"exchange"`` lets documents of equal length change places, which takes none; ``"megatron"`` is
            the order of Megatron's GPT datasets, for ``samples``. By default a table up to 2**20 documents.
        samples: of the order ``"megatron"``, the number of samples that its index is built for, over all
            epochs; None for one epoch of the data. Every epoch of the dataset has the same samples then.
        most: the most documents in a sample of ``"best_fit"``.
        long: what ``"best_fit"`` does with a document that is longer than a sample.
        positions: ``"piece"`` counts from 0 in each piece of a document; ``"document"`` goes on counting in
            the document, where a piece begins within one.
        pad: the token of places that no document fills.

    Raises:
        InvalidArgument: a value breaks its rule, or does not go with another.
        WrongType: a value has a wrong type.

    Example:
        >>> import seekable as sk
        >>> docs = sk.from_sequence([{"tokens": [1, 2, 3]}, {"tokens": [4, 5]}, {"tokens": [6]}])
        >>> samples = docs.pack(4, seed=7, method=sk.Packing("best_fit", most=1, pad=9))
        >>> sorted(sample["tokens"].tolist() for sample in samples)
        [[1, 2, 3, 9], [4, 5, 9, 9], [6, 9, 9, 9]]
    """

    method: Literal["concat", "best_fit"] = "concat"
    _: KW_ONLY
    order: Literal["table", "exchange", "megatron"] | None = None
    samples: int | None = None
    most: int | None = None
    long: Literal["split", "truncate", "drop"] = "split"
    positions: Literal["piece", "document"] = "piece"
    pad: int = 0

    def __post_init__(self) -> None:
        """Check each value, and that each is of use with the others."""
        checked_choice("method", self.method, ("concat", "best_fit"))
        if self.order is not None:
            checked_choice("order", self.order, ("table", "exchange", "megatron"))
        checked_choice("long", self.long, ("split", "truncate", "drop"))
        checked_choice("positions", self.positions, ("piece", "document"))
        for name in ("samples", "most"):
            if getattr(self, name) is not None:
                checked_count(name, getattr(self, name), least=1)
        checked_count("pad", self.pad, least=-(1 << 63))
        self._check_together()

    def _check_together(self) -> None:
        if self.method == "best_fit":
            _refuse(
                {"order=": self.order is not None, "samples=": self.samples is not None},
                "best fit has an order of its own: leave it out, or take method='concat'",
            )
            return
        given = {"most=": self.most is not None, "long=": self.long != "split"}
        _refuse(given, "samples of method='concat' are always full: leave it out, or take method='best_fit'")
        if self.order != "megatron":
            given = {"samples=": self.samples is not None}
            _refuse(given, "it is for order='megatron': cut others with take(n)")


def _refuse(given: dict[str, bool], reason: str) -> None:
    wrong = next((name for name, is_given in given.items() if is_given), None)
    if wrong is not None:
        message = f"there is no use for {wrong} here: {reason}"
        raise InvalidArgument(message)


def checked_packing(method: object) -> Packing:
    """Return the argument ``method=`` of ``pack`` as a value.

    Raises:
        InvalidArgument: it is neither the name of a method nor such a value.
    """
    if isinstance(method, Packing):
        return method
    if method == "best_fit" or method == "concat":  # noqa: PLR1714 - each comparison says its type
        return Packing(method)
    message = f"pack() takes method= as 'concat', 'best_fit' or sk.Packing(...) (got {method!r})"
    raise InvalidArgument(message)
