"""An older order over the present sources, whose records are what the present pipeline makes of them.

Two pipelines are gone through side by side, as they were described and as they are. What orders rows is taken
from the one that was described, what makes records from the present one; sources are the present ones, with
the rows that they had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import StateMismatch
from seekable.nodes.bases import Aligned, OverOne
from seekable.nodes.batch import Batch
from seekable.nodes.concat import Concat
from seekable.nodes.contract import Leaf, RecordNode
from seekable.nodes.repeat import Repeat
from seekable.nodes.zip import Zip
from seekable.resume.description import UNKNOWN_ROWS, outlined
from seekable.resume.match_files import rows_in
from seekable.resume.match_rows import with_chosen_rows
from seekable.resume.placeholders import DescribedSource
from seekable.resume.sources import over
from seekable.state.canonical import canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.dataset.base import Dataset

__all__ = ["grafted"]


def grafted(old: Dataset, new: Dataset) -> Dataset:
    """Return a dataset in the old order with the records of the new one.

    Args:
        old: made of a description (`seekable.resume.description.outlined`).
        new: the present one.

    Raises:
        StateMismatch: the present sources do not have the old rows, or they are put together otherwise.
        InvalidArgument: which rows were chosen by content is not known any more.

    Example:
        >>> import seekable as sk
        >>> words = sk.from_sequence(["a", "b", "c"])
        >>> old = outlined(words.shuffle(seed=1).describe(None))
        >>> ds = grafted(old, words.map(str.upper).shuffle(seed=2))
        >>> list(ds) == [record.upper() for record in words.shuffle(seed=1)]
        True
    """
    if _same(old, new):
        return new
    orders, old_core = _orders(old)
    nodes, new_core = _chain(new)
    made = _core(old_core, new_core)
    for order in reversed(orders):
        if isinstance(order, DescribedSource):
            made = with_chosen_rows(order.described, made, nodes, path=order.names[0])
        else:
            made = over(order, made)
    for node in reversed(nodes):
        if isinstance(node, RecordNode):
            made = over(node, made)
    if made.size != old.size:
        message = f"what was {old!r} has {made.size:,} records over the present sources: {made!r}"
        raise StateMismatch(message)
    return new if _same(made, new) else made


def _orders(old: Dataset) -> tuple[list[Dataset], Dataset]:
    """Return what orders the rows, outermost first, and what lies below it."""
    orders: list[Dataset] = []
    while True:
        if isinstance(old, DescribedSource) and _chose_rows(old):
            orders.append(old)
            old = outlined(old.described["of"][0])
        elif _is_over_one(old):
            if not isinstance(old, Aligned) or isinstance(old, Repeat):
                orders.append(old)
            old = old.child  # type: ignore[attr-defined]
        else:
            return orders, old


def _chose_rows(old: DescribedSource) -> bool:
    """Tell whether it chose rows of one child; a join has several, and is what it was or nothing."""
    return old.described["kind"] in UNKNOWN_ROWS and len(old.described["of"]) == 1


def _chain(new: Dataset) -> tuple[list[Dataset], Dataset]:
    """Return the nodes over one child, outermost first, and what lies below them."""
    nodes: list[Dataset] = []
    while _is_over_one(new):
        nodes.append(new)
        new = new.child  # type: ignore[attr-defined]
    return nodes, new


def _is_over_one(node: Dataset) -> bool:
    return isinstance(node, OverOne) and not isinstance(node, Batch)


def _core(old: Dataset, new: Dataset) -> Dataset:
    made: Dataset | None = None
    if _same(old, new):
        made = new
    elif isinstance(old, DescribedSource) and "of" in old.described:
        pass
    elif isinstance(old, DescribedSource) and isinstance(new, Leaf):
        made = rows_in(old.described, new)
    elif isinstance(old, DescribedSource) and isinstance(new, Concat):
        made = _first_that_has(old, new.parts)
    elif isinstance(old, Concat) and isinstance(new, Concat):
        made = Concat(_each_of(old.parts, new.parts))
    elif isinstance(old, Concat) and isinstance(new, Leaf):
        made = Concat(tuple(grafted(part, new) for part in old.parts))
    elif isinstance(old, Zip) and isinstance(new, Zip) and len(old.parts) == len(new.parts):
        made = Zip(tuple(grafted(*pair) for pair in zip(old.parts, new.parts, strict=True)))
    elif isinstance(old, Batch) and isinstance(new, Batch):
        made = Batch(grafted(old.child, new.child), old.length)
    if made is None:
        was = old.described["kind"] if isinstance(old, DescribedSource) else old.kind
        message = f"what was {was}, {old!r}, is {new.kind} now, {new!r}: its rows cannot be told there"
        raise StateMismatch(message)
    return made


def _first_that_has(old: Dataset, parts: Sequence[Dataset]) -> Dataset:
    """Return the rows of a source in the first of some parts that has them.

    Raises:
        StateMismatch: none has; the message is that of the first.
    """
    failed: list[StateMismatch] = []
    for part in parts:
        try:
            return grafted(old, part)
        except StateMismatch as error:
            failed.append(error)
    raise failed[0]


def _each_of(olds: Sequence[Dataset], news: Sequence[Dataset]) -> tuple[Dataset, ...]:
    """Return each old part over the one in its place, or over the first of the others that has its rows."""
    made = []
    for place, old in enumerate(olds):
        others = [new for other, new in enumerate(news) if other != place]
        made.append(_first_that_has(old, [*news[place : place + 1], *others]))
    return tuple(made)


def _same(old: Dataset, new: Dataset) -> bool:
    return canonical_json(_described(old)) == canonical_json(_described(new))


def _described(node: Dataset) -> Any:
    return node.describe(None)
