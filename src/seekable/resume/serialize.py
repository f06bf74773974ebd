"""What a state keeps of a pipeline that goes on by rows: enough to make it again of the plain one.

    {"0": {"olds": [...], "pieces": [...], "lagging": [...], "tail": 0, "first": 1000}}

Each part that is continued has an entry under its number. ``olds`` are descriptions in which the part's own
nodes are their numbers there, so that no function is looked for and no file is named again. What is empty or
0 is left out, so that an entry whose pieces have come is a number or two.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import SeekableError, StateMismatch
from seekable.nodes.bases import OverOne
from seekable.nodes.filter.node import Filter
from seekable.resume.continued import Continued
from seekable.resume.description import REBUILT, UNKNOWN_ROWS
from seekable.resume.match_rows import with_chosen_rows
from seekable.resume.sources import over, parts_of, with_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.dataset.base import Dataset

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
            nodes = list(_nodes(part))
            olds = [_made(old, nodes) for old in entry.get("olds", [])]
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
    nodes = list(_nodes(part.new))
    return {"olds": [_brief(old, nodes) for old in part.olds], **arguments}


def _brief(node: Dataset, nodes: list[Dataset]) -> dict[str, Any]:
    """Describe a node: as one of the part's own, or like one of them, or as it describes itself."""
    for number, own in enumerate(nodes):
        if own is node:
            return {"node": number}
    below = [_brief(child, nodes) for child in _children(node)]
    for number, own in enumerate(nodes):
        if isinstance(node, OverOne) and _is_over_another(node, own):
            return {"like": number, "of": below}
    path = {"path": node.rows.path} if isinstance(node, Filter) and node.rows.named else {}
    return {"kind": node.kind, **node.arguments(None), **path, "of": below}


def _made(brief: Mapping[str, Any], nodes: list[Dataset]) -> Dataset:
    """Return the node that was described so."""
    if "node" in brief:
        own: Dataset = nodes[brief["node"]]
        return own
    below = tuple(_made(child, nodes) for child in brief["of"])
    if "like" in brief:
        return over(nodes[brief["like"]], below[0])
    if brief["kind"] in UNKNOWN_ROWS:
        return with_chosen_rows(brief, below[0], nodes, path=brief.get("path"))
    return REBUILT[brief["kind"]](brief, below)


def _is_over_another(node: Dataset, own: Dataset) -> bool:
    """Tell whether one node is another one but for its child: functions, too, are the very same."""
    if type(node) is not type(own) or not is_dataclass(node):
        return False
    return all(
        getattr(node, each.name) is getattr(own, each.name) for each in fields(node) if each.name != "child"
    )


def _nodes(node: Dataset) -> Iterator[Dataset]:
    yield node
    for child in _children(node):
        yield from _nodes(child)


def _children(node: Dataset) -> tuple[Dataset, ...]:
    return node.children  # type: ignore[return-value]  # the children of datasets are datasets
