"""What a state keeps of a pipeline that goes on by rows: enough to make it again of the plain one.

    {"0": {"olds": [...], "pieces": [...], "lagging": [...], "tail": 0, "first": 1000}}

Each part that is continued has an entry under its number. ``olds`` are descriptions in which a source of the
part is its number there, so that none names its files again; None is the part's own order. What is empty or 0
is left out, so that an entry whose pieces have come is a number or two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.dataset.continued import Continued
from seekable.dataset.contract import Leaf
from seekable.dataset.described.rebuild import outlined
from seekable.dataset.rows.graft import grafted
from seekable.dataset.rows.parts import parts_of, with_parts
from seekable.errors import SeekableError, StateMismatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.dataset.base import Dataset
    from seekable.dataset.contract import Node

__all__ = ["Recipe", "made_of", "recipe_of"]

Recipe = dict[str, Any]

_NOTHING = {"pieces": [], "lagging": [], "tail": 0, "first": 0}


def recipe_of(dataset: Dataset) -> Recipe:
    """Return what makes a pipeline of its plain one; empty where it is that.

    Example:
        >>> import seekable as sk
        >>> recipe_of(sk.from_sequence("abc").shuffle(seed=1))
        {}
    """
    return {
        str(number): _entry(part.dataset)
        for number, part in enumerate(parts_of(dataset))
        if isinstance(part.dataset, Continued)
    }


def made_of(recipe: Mapping[str, Any], plain: Dataset) -> Dataset:
    """Return the pipeline that a recipe is of.

    Raises:
        StateMismatch: it is no recipe for this pipeline, or the sources are not those it was made for.
    """
    parts = [part.dataset for part in parts_of(plain)]
    try:
        for number, entry in recipe.items():
            part = parts[int(number)]
            olds = [part if old is None else _order(old, part) for old in entry.get("olds", [])]
            parts[int(number)] = Continued.of({**_NOTHING, **entry}, olds, part)
    except SeekableError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"the state's 'rows' are not of this pipeline: {type(error).__name__}: {error}"
        raise StateMismatch(message) from error
    return with_parts(plain, parts)


def _entry(part: Continued) -> dict[str, Any]:
    arguments = {key: value for key, value in part.arguments(None).items() if value != _NOTHING[key]}
    if not part.olds:
        return arguments
    leaves = {id(leaf): number for number, leaf in enumerate(_leaves(part.new))}
    olds = [None if old is part.new else _brief(old, leaves) for old in part.olds]
    return {"olds": olds, **arguments}


def _brief(node: Node, leaves: Mapping[int, int]) -> dict[str, Any]:
    if id(node) in leaves:
        return {"leaf": leaves[id(node)]}
    below = [_brief(child, leaves) for child in node.children]
    return {"kind": node.kind, **node.arguments(None), "of": below}


def _order(brief: Mapping[str, Any], part: Dataset) -> Dataset:
    leaves = list(_leaves(part))
    return grafted(outlined(_whole(brief, leaves)), part)


def _whole(brief: Mapping[str, Any], leaves: list[Leaf]) -> dict[str, Any]:
    if "leaf" in brief:
        described: dict[str, Any] = leaves[brief["leaf"]].describe(None)
        return described
    return {**brief, "of": [_whole(child, leaves) for child in brief["of"]]}


def _leaves(node: Node) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
    for child in node.children:
        yield from _leaves(child)
