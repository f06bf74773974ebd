"""The choice how documents fill samples, as a value: ``sk.Packing``; and the cut of an epoch into samples.

The cut has the arguments that decide which tokens make a sample.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from seekable._arguments import checked_choice, checked_count, checked_seed, explains_fields
from seekable.errors import InvalidArgument, WrongType
from seekable.packing.order.fill_in_middle import Fim

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Packing", "SampleCut", "checked_cut", "checked_packing", "usual_order", "windows_cut"]


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


Method = Literal["windows", "concat", "best_fit"]
Order = Literal["table", "exchange", "megatron"]
Long = Literal["split", "truncate", "drop"]

_MOST_TOKENS = (1 << 31) - 1
"""The most tokens of a sample: positions in a sample are int32."""

_MOST_IN_TABLE = 1 << 20
"""The most documents that are ordered by a table, unless ``order`` says otherwise."""


@dataclass(frozen=True, slots=True)
class SampleCut:
    """The cut of an epoch; documents of the same lengths are cut in the same way by the same cut."""

    method: Method
    length: int
    """The number of tokens of a sample, without the token that is the last label."""

    extra: int
    """1 if a sample also has the token after its last one; else 0."""

    order: Order | None = None
    """The way in which documents change places; None for natural order and for best fit."""

    seed: int = 0
    most: int | None = None
    """The most documents of a sample; None without a limit."""

    long: Long = "split"
    """The fate of documents that are longer than a sample, where samples are filled by best fit."""

    fim: Fim | None = None
    samples: int | None = None
    """The number of samples that the order of Megatron is made for; None for those of one epoch."""

    keep_last: bool = False
    """True if the order of Megatron has a last sample that is not full."""

    def __post_init__(self) -> None:
        """Check the numbers, which may come from a file.

        Raises:
            InvalidArgument: one is out of its range.
        """
        checked_seed(self.seed)
        for name, least in (("length", 1), ("extra", 0), ("most", 1), ("samples", 1)):
            if (number := getattr(self, name)) is not None:
                checked_count(name, number, least=least)
        if self.length > _MOST_TOKENS:
            message = (
                f"length must be at most {_MOST_TOKENS:,}, because positions in a sample are int32 "
                f"(got {self.length:,}): take a shorter one"
            )
            raise InvalidArgument(message)

    @property
    def steady(self) -> bool:
        """True if every epoch is cut alike."""
        return self.method == "windows" or self.order == "megatron"

    @property
    def full(self) -> int:
        """The number of tokens of a full sample."""
        return self.length + self.extra

    def described(self) -> dict[str, Any]:
        """Return the arguments for the fingerprint, JSON-safe."""
        described: dict[str, Any] = {"length": self.length, "extra": self.extra}
        if self.method == "windows":
            return described
        described |= {"method": self.method, "seed": self.seed}
        if self.method == "best_fit":
            described |= {"most": self.most, "long": self.long}
        else:
            described |= {"order": self.order}
        if self.fim is not None:
            described["fim"] = asdict(self.fim)
        if self.samples is not None:
            described["samples"] = self.samples
        if self.keep_last:
            described["keep_last"] = True
        return described

    @classmethod
    def from_description(cls, tree: Mapping[str, Any]) -> SampleCut:
        """Return the cut that a description of a node was made with.

        Raises:
            KeyError, TypeError, ValueError: it is the description of no such node.
        """
        if "method" not in tree:
            return cls("windows", tree["length"], tree["extra"])
        fim = tree.get("fim")
        return cls(
            tree["method"],
            tree["length"],
            tree["extra"],
            order=tree.get("order"),
            seed=tree["seed"],
            most=tree.get("most"),
            long=tree.get("long", "split"),
            fim=None if fim is None else Fim(**fim),
            samples=tree.get("samples"),
            keep_last=tree.get("keep_last", False),
        )


def windows_cut(length: object, *, extra: int) -> SampleCut:
    """Return the cut of documents end to end into windows, in natural order.

    Raises:
        WrongType, InvalidArgument: the length is no integer of at least 1.
    """
    return SampleCut("windows", checked_count("length", length, least=1), extra)


def usual_order(documents: int) -> Order:
    """Return the order of a number of documents where none is asked for."""
    return "table" if documents <= _MOST_IN_TABLE else "exchange"


def checked_cut(
    length: object, *, seed: object, how: Packing, fim: object, extra: int, documents: int
) -> SampleCut:
    """Return the cut for arguments of ``pack``.

    Args:
        length: as of the method ``Dataset.pack``.
        seed: as of the method.
        how: how documents fill samples.
        fim: as of the method.
        extra: 1 if a sample also has the token after its last one; else 0.
        documents: the number of documents.

    Raises:
        WrongType: an argument is of another type.
        InvalidArgument: an argument breaks a rule, or does not go with the others.
    """
    if fim is not None and not isinstance(fim, Fim):
        message = f"pack() takes fim= as sk.Fim(rate=, prefix=, suffix=, middle=) (got {fim!r})"
        raise WrongType(message)
    if fim is not None:
        _check_rearranged(how)
    order = how.order
    if how.method == "concat" and order is None:
        order = usual_order(documents)
    return SampleCut(
        how.method,
        checked_count("length", length, least=1),
        extra,
        order=order,
        seed=checked_seed(seed),
        most=how.most,
        long=how.long,
        fim=fim,
        samples=how.samples,
    )


def _check_rearranged(how: Packing) -> None:
    """Raise an error if documents that fill samples in a way cannot be rearranged."""
    if how.method == "best_fit":
        reason = "best fit cuts no document that fits: leave it out, or take method='concat'"
    elif how.order == "megatron":
        reason = "Megatron's order has its documents as they are: leave it out"
    elif how.positions == "document":
        reason = "positions='document' counts in documents as they are: take positions='piece'"
    else:
        return
    message = f"pack() has no use for fim= here: {reason}"
    raise InvalidArgument(message)
