"""The form of packed samples: the columns that they have, and the arguments that decide what these hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from seekable._arguments import checked_flag
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LOSS_MASK", "OF_SEGMENTS", "TOKENS", "SampleForm", "checked_form"]

Labels = Literal["within", "across"]
Positions = Literal["piece", "document"]

TOKENS, LOSS_MASK = "tokens", "loss_mask"

OF_SEGMENTS = ("segment_ids", "positions", "cu_seqlens", "max_seqlen")
"""The names of the columns that are made of segments."""

_OF_LABELS = ("labels", LOSS_MASK)


@dataclass(frozen=True, slots=True)
class SampleForm:
    """The columns of samples; it decides no boundary between them."""

    columns: tuple[str, ...]
    """The names of the columns, in their order."""

    key: str | None
    """The name of the tokens in the child's records; None if the records are the tokens."""

    align: tuple[str, ...]
    """The names of the arrays in the child's records that have one value for each token."""

    positions: Positions
    """The token that has position 0: the first one of the piece, or of its document."""

    labels: Labels | None
    """The rule for the loss between two documents; None without labels."""

    next_token: bool
    """True if arrays have one token more than the length of a sample."""

    pad: int
    """The token in the places that no document fills."""

    @property
    def extra(self) -> int:
        """1 if a sample needs the token after its last one too; else 0."""
        return int(self.next_token or self.labels is not None)

    def described(self) -> dict[str, Any]:
        """Return the columns and the arguments that are not the default ones, JSON-safe."""
        given: dict[str, tuple[Any, Any]] = {
            "key": (self.key, TOKENS),
            "align": (list(self.align), []),
            "positions": (self.positions, "piece"),
            "labels": (self.labels, None),
            "next_token": (self.next_token, False),
            "pad": (self.pad, 0),
        }
        others = {name: value for name, (value, default) in given.items() if value != default}
        return {"columns": list(self.columns), **others}

    @classmethod
    def from_description(cls, tree: Mapping[str, Any]) -> SampleForm:
        """Return the form that a description of a node was made with.

        Raises:
            KeyError: it is the description of no such node.
        """
        return cls(
            columns=tuple(tree["columns"]),
            key=tree.get("key", TOKENS),
            align=tuple(tree.get("align", ())),
            positions=tree.get("positions", "piece"),
            labels=tree.get("labels"),
            next_token=tree.get("next_token", False),
            pad=tree.get("pad", 0),
        )

    def needed(self, columns: frozenset[str] | None) -> tuple[str, ...]:
        """Return the columns that are to be made, where only some are used."""
        return tuple(name for name in self.columns if columns is None or name in columns)

    def read_for(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Return the arrays that some columns are made from: ``"tokens"``, names of ``align``."""
        used = set(columns)
        tokens = TOKENS in used or "labels" in used
        aligned = [name for name in self.align if name in used]
        return (TOKENS, *aligned) if tokens else tuple(aligned)


def checked_form(  # noqa: PLR0913 - the arguments of Dataset.pack
    call: str,
    *,
    default: tuple[str, ...],
    key: object,
    align: object,
    columns: object,
    next_token: object,
    labels: object = None,
    positions: Positions = "piece",
    pad: int = 0,
) -> SampleForm:
    """Return the form of samples for the arguments of a method.

    Args:
        call: the name of the method, for errors.
        default: the columns without ``columns``, before those of ``labels`` and ``align``.
        key: an argument of the method, as all others.
        align: as of the method.
        columns: as of the method.
        next_token: as of the method.
        labels: as of the method.
        positions: as of ``sk.Packing``.
        pad: as of ``sk.Packing``.

    Raises:
        WrongType: an argument is of another type.
        InvalidArgument: an argument breaks a rule.
    """
    if key is not None and not isinstance(key, str):
        message = f"{call} takes key= as the name of the tokens in records, or None (got {key!r})"
        raise WrongType(message)
    if labels not in (None, "within", "across"):
        message = f"{call} takes labels= as 'within', 'across' or None (got {labels!r})"
        raise InvalidArgument(message)
    aligned = _checked_align(call, align, key)
    with_labels = _OF_LABELS if labels is not None else ()
    return SampleForm(
        columns=_checked_columns(call, columns, default, with_labels, aligned),
        key=key,
        align=aligned,
        positions=positions,
        labels=labels,
        next_token=checked_flag("next_token", next_token),
        pad=pad,
    )


def _checked_align(call: str, align: object, key: object) -> tuple[str, ...]:
    names = _names(call, "align", align)
    if key is None and names:
        message = f"{call} takes align= for records that are dicts: key=None says that they are arrays"
        raise InvalidArgument(message)
    own = {TOKENS, "labels", *OF_SEGMENTS, key}
    if wrong := [name for name in names if name in own]:
        message = (
            f"{call} makes a column {wrong[0]!r} itself, so that no aligned array can have this name: give "
            f"it another one, with rename({{{wrong[0]!r}: ...}}) before"
        )
        raise InvalidArgument(message)
    return names


def _checked_columns(
    call: str, columns: object, default: tuple[str, ...], labels: tuple[str, ...], align: tuple[str, ...]
) -> tuple[str, ...]:
    if columns is None:
        return tuple(dict.fromkeys((*default, *labels, *align)))
    names = _names(call, "columns", columns)
    known = dict.fromkeys((TOKENS, *OF_SEGMENTS, *labels, *align))
    if not names:
        message = f"{call} takes columns= with one name at least, of {', '.join(known)} (got none)"
        raise InvalidArgument(message)
    if wrong := [name for name in names if name not in known]:
        way = ": arrays of the documents are named in align= first"
        if wrong[0] in _OF_LABELS:
            way = ": this one comes with labels='within' or labels='across'"
        message = f"{call} has no column {wrong[0]!r}, but {', '.join(known)}{way}"
        raise InvalidArgument(message)
    return names


def _names(call: str, argument: str, names: object) -> tuple[str, ...]:
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        message = f"{call} takes {argument}= as a list of names (got {names!r})"
        raise WrongType(message)
    listed = tuple(names)
    if wrong := [name for name in listed if not isinstance(name, str)]:
        message = f"{call} takes {argument}= as a list of names (got {wrong[0]!r} in it)"
        raise WrongType(message)
    if len(set(listed)) < len(listed):
        twice = next(name for at, name in enumerate(listed) if name in listed[:at])
        message = f"{call} takes each name of {argument}= once (got {twice!r} twice)"
        raise InvalidArgument(message)
    return listed
