"""The mixtures of a pipeline that a run can steer, and the pipeline with other weights from a position on.

A mixture can be steered if it has no end of its own, and if its order passes on to the top: below a node
whose rows are the same in every epoch (`epoch(e)`, `shuffle(fixed=True)` over it) nothing can change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.graph import nodes_of, with_children
from seekable.nodes.mix import Mix, schedule_of
from seekable.nodes.node import InnerNode, Node
from seekable.state.journal import steers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.state.journal import Journal, Steer

__all__ = ["Named", "changed", "chosen", "mixture_number", "steered", "weights_before", "weights_for"]


def mixture_number(root: Node, mixture: int | str | None) -> int:
    """Return the number of a mixture that can be steered, counted from the top of the graph.

    Args:
        root: the pipeline.
        mixture: its number; or its name, which is the names that lead to it through other mixtures, joined by
            dots; or None for the only one.

    Raises:
        InvalidArgument: there is none, or several and ``mixture`` is None, or none of this name or number.
            The message has the choices.
        WrongType: ``mixture`` is neither.

    Example:
        >>> import seekable as sk
        >>> inner = sk.mix([sk.from_sequence("ab"), sk.from_sequence("cd")], seed=1, stop="never")
        >>> outer = sk.mix({"x": inner, "y": sk.from_sequence("ef")}, weights=[1, 1], seed=1, stop="never")
        >>> mixture_number(outer._node, "x")
        1
    """
    found = _named_mixtures(root)
    if not found:
        raise InvalidArgument(_no_mixture(root))
    return chosen([Named(names, mix.names, len(mix.parts)) for mix, names in found], mixture)


class Named(NamedTuple):
    """The names that a user may call a mixture by, and what it mixes."""

    names: Sequence[str]
    """The names of its places in other mixtures; none for one that stands in no other one."""
    parts: tuple[str, ...] | None
    """The names of what is mixed."""
    size: int
    """The number of these."""


def chosen(found: Sequence[Named], mixture: int | str | None) -> int:
    """Return the number of the mixture that is meant, among at least one.

    Raises:
        InvalidArgument: several are there and ``mixture`` is None, or none has this name or number.
        WrongType: ``mixture`` is neither.
    """
    if mixture is None:
        if len(found) > 1:
            raise InvalidArgument(f"there are {len(found)} mixtures to steer: say {_choices(found)}")
        return 0
    if isinstance(mixture, str):
        numbers = [number for number, each in enumerate(found) if mixture in each.names]
    elif isinstance(mixture, bool) or not isinstance(mixture, int):
        raise WrongType(f"mixture must be the name or the number of a mixture (got {mixture!r})")
    else:
        numbers = [mixture] if 0 <= mixture < len(found) else []
    if len(numbers) != 1:
        many = "no mixture" if not numbers else f"{len(numbers)} mixtures"
        raise InvalidArgument(f"mixture={mixture!r} names {many}: say {_choices(found)}")
    return numbers[0]


def weights_for(root: Node, number: int, weights: Any) -> tuple[int, ...]:
    """Return weights for a mixture as integers, in the order of its parts.

    Args:
        root: the pipeline.
        number: the number of the mixture.
        weights: a mapping from the names of the parts, or a list in their order.

    Raises:
        InvalidArgument: the weights break a rule, or give an empty part a positive one.
        WrongType: ``weights`` is neither a mapping nor a list, or is a schedule.
    """
    mix = _endless_mixtures(root)[number]
    schedule = schedule_of(weights, mix.names, len(mix.parts))
    if len(schedule) > 1 or schedule[0][0]:
        raise WrongType(
            f"steer takes the weights from one step on (got a schedule, {weights!r:.100}): call it once for "
            f"each step, with at="
        )
    whole = schedule[0][1]
    for slot, (part, weight) in enumerate(zip(mix.parts, whole, strict=True)):
        if part.size == 0 and weight:
            name = mix.names[slot] if mix.names else slot
            raise InvalidArgument(f"a dataset of positive weight must have records (got none in {name!r})")
    return whole


def weights_before(root: Node, journal: Journal, entry: Steer) -> tuple[int, ...] | None:
    """Return the weights of a mixture that hold before an entry; None where a schedule decides them."""
    mix = _endless_mixtures(root)[entry.mixture]
    before = [each for each in steers(journal) if each.mixture == entry.mixture and each.at <= entry.at]
    if before:
        return before[-1].weights
    return mix.schedule[0][1] if len(mix.schedule) == 1 else None


def steered(root: Node, number: int, weights: tuple[int, ...], position: int) -> Node:
    """Return a pipeline of which a mixture has other weights, from a position of the pipeline on.

    The mixture changes at its first position that nothing before ``position`` draws. So no record before
    ``position`` changes; below another mixture, or in an order that reads epochs as a whole, later ones may
    still be of the old weights.

    Args:
        root: the pipeline.
        number: the number of the mixture.
        weights: integers, in the order of its parts.
        position: a position of the pipeline.
    """
    mix = _endless_mixtures(root)[number]
    below: dict[int, Node] = {id(mix): mix.steered(weights, _drawn_up_to(root, mix, position))}
    for node in nodes_of(root):
        # What is steady stays: a mixture there is one that nobody steers.
        if id(node) not in below and not node.steady and any(id(child) in below for child in node.children):
            below[id(node)] = with_children(node, below)
    return below[id(root)]


def changed(root: Node, journal: Journal) -> Node:
    """Return a pipeline with the weights of those entries of a journal that have begun: with positions."""
    for entry in steers(journal):
        if entry.position is not None:
            root = steered(root, entry.mixture, entry.weights, entry.position)
    return root


def _drawn_up_to(root: Node, mix: Mix, position: int) -> int:
    """Return the first position of a mixture that no position of the root before ``position`` draws."""
    above, nodes = {id(mix)}, nodes_of(root)
    for node in nodes:
        if not node.steady and any(id(child) in above for child in node.children):
            above.add(id(node))
    stops: dict[int, int] = {id(root): position}
    for node in reversed(nodes):
        if node is mix or id(node) not in above or not isinstance(node, InnerNode):
            continue
        for slot, child in enumerate(node.children):
            if id(child) in above:
                # A node may stand at several places; what any of them has drawn stays.
                drawn = node.child_range(slot, 0, stops[id(node)])[1] or 0
                stops[id(child)] = max(stops.get(id(child), 0), drawn)
    return stops[id(mix)]


def _endless_mixtures(root: Node) -> list[Mix]:
    """Return the mixtures without end whose order passes on to the top, each once, those above first."""
    return [mix for mix, _ in _named_mixtures(root)]


def _named_mixtures(root: Node) -> list[tuple[Mix, list[str]]]:
    """Return the mixtures that can be steered, each with the names of its places."""
    found: dict[int, tuple[Mix, list[str]]] = {}
    for node, name in _unsteady(root, ""):
        if isinstance(node, Mix) and node.stop == "never":
            _, names = found.setdefault(id(node), (node, []))
            if name and name not in names:
                names.append(name)
    return list(found.values())


def _unsteady(root: Node, name: str) -> Iterator[tuple[Node, str]]:
    """Yield the nodes whose rows differ between epochs, and the names of mixtures' parts that lead there."""
    seen: set[tuple[int, str]] = set()
    pending = [(root, name)]
    while pending:
        node, name = pending.pop()
        if node.steady or (id(node), name) in seen:
            continue
        seen.add((id(node), name))
        yield node, name
        names = node.names if isinstance(node, Mix) else None
        for slot in reversed(range(len(node.children))):
            below = name if names is None else f"{name}.{names[slot]}" if name else names[slot]
            pending.append((node.children[slot], below))


def _choices(found: Sequence[Named]) -> str:
    texts = []
    for number, each in enumerate(found):
        parts = ", ".join(map(repr, each.parts)) if each.parts else f"{each.size} parts"
        texts.append(f"mixture={(each.names[0] if each.names else number)!r} (of {parts})")
    return " or ".join(texts)


def _no_mixture(root: Node) -> str:
    finite = [node for node in nodes_of(root) if isinstance(node, Mix)]
    if not finite:
        return f"steer changes the weights of a mixture, and this pipeline has none: {root.in_words()[:200]}"
    return (
        f"steer changes the weights of a mixture without end, and this one has epochs whose length depends "
        f"on its weights (stop={finite[-1].stop!r}): mix with stop='never', and bound the run by steps="
    )
