"""The graph of a stream as far as its tokens go: which items those of a stage were made of.

It is told from the stream itself, or from a description alone, of the stages that there are here.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument
from seekable.stream.contract import Inner
from seekable.stream.rebuild import as_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seekable.resume.sources import Name
    from seekable.stream.contract import Stage, Token
    from seekable.stream.kept import Kept

    Origins = Callable[[Token], Sequence[tuple[int, Token]]]
    Held = Callable[[Mapping[str, Any]], Sequence[tuple[int, Token]]]

_SOURCE, _REPEAT = "dataset", "repeat"
"""The kinds of what has rows, and of what has none that could be counted; iterators of streams look here, so
their classes are not at hand."""

__all__ = ["Joint", "described_joint", "joint_of", "rows_held"]


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """One stage."""

    kind: str
    inputs: tuple[Joint, ...]
    names: tuple[str | int, ...]
    """What the inputs are called, where there are several."""
    origins: Origins
    held: Held
    source: Any = None
    """The stage, or the description, of one that reads a dataset."""
    starts: tuple[int, ...] = field(init=False)
    """How many sources there are before those of each input, and in all; those of a source are itself."""

    def __post_init__(self) -> None:
        """Count the sources."""
        widths = [below.starts[-1] for below in self.inputs]
        object.__setattr__(self, "starts", (0, *itertools.accumulate(widths)) if widths else (0, 1))

    def all(self) -> Iterator[Joint]:
        """Yield this stage and all those below, in the order of the graph."""
        yield self
        for below in self.inputs:
            yield from below.all()

    def sources(self, name: Name = ()) -> Iterator[tuple[Name, Joint]]:
        """Yield the stages that read datasets, and what they are called."""
        if not self.inputs:
            yield name, self
        for own, below in zip(self.names, self.inputs, strict=True):
            yield from below.sources((*name, own) if len(self.inputs) > 1 else name)

    def rows(self, token: Token, first: int = 0) -> Iterator[tuple[int, int]]:
        """Yield the rows that an item was made of: the number of a source, and a position there.

        The sources are counted from ``first`` on.
        """
        if not self.inputs:
            yield first, token
            return
        for slot, origin in self.origins(token):
            yield from self.inputs[slot].rows(origin, first + self.starts[slot])


def rows_held(root: Joint, stages: Sequence[Kept]) -> list[tuple[int, int]]:
    """Return the rows of items that wait in the stages of one lane, each once, those first that came first.

    Args:
        root: the graph.
        stages: what the stages remember, in its order.

    Raises:
        CorruptState: they are those of another graph.
    """
    joints = list(root.all())
    if len(joints) != len(stages):
        message = f"the state of a lane must have {len(joints)} stages (got {len(stages)})"
        raise CorruptState(message)
    found: dict[tuple[int, int], None] = {}
    before = 0
    for joint, kept in zip(joints, stages, strict=True):
        waiting = [(0, as_token(token)) for token in kept.tokens]
        for slot, token in (*waiting, *joint.held(kept.memory)):
            found.update(dict.fromkeys(joint.inputs[slot].rows(token, before + joint.starts[slot])))
        before += not joint.inputs
    return list(found)


def joint_of(stage: Stage) -> Joint:
    """Return the graph of a stream.

    Raises:
        InvalidArgument: a stage has no rows that could be counted.
    """
    if stage.kind == _REPEAT:
        raise InvalidArgument(_repeated(stage))
    if not isinstance(stage, Inner):
        if stage.kind != _SOURCE:
            raise InvalidArgument(_no_rows(repr(stage)))
        return Joint(_SOURCE, (), (), _itself, _nothing, stage)
    inputs = tuple(map(joint_of, stage.inputs))
    names = getattr(getattr(stage, "mixture", stage), "names", None) or range(len(inputs))
    return Joint(stage.kind, inputs, tuple(names), stage.origins, stage.held)


def described_joint(description: Mapping[str, Any], present: Stage | None = None) -> Joint:
    """Return the graph of a stream that was described.

    Args:
        description: what ``describe`` returned.
        present: a stream; stages of users are known here if it has one of the same kind.

    Raises:
        InvalidArgument: a stage has no rows that could be counted, or is not known here.
    """
    return _described(description, {} if present is None else _stages_of_users(present))


def _stages_of_users(stage: Stage) -> dict[str, Inner]:
    found = {stage.kind: stage} if isinstance(stage, Inner) and stage.kind not in _ORIGINS else {}
    for source in stage.inputs:
        found |= _stages_of_users(source)
    return found


def _described(description: Mapping[str, Any], of_users: Mapping[str, Inner]) -> Joint:
    kind = description["kind"]
    if kind == _SOURCE:
        return Joint(kind, (), (), _itself, _nothing, description)
    if kind == _REPEAT:
        raise InvalidArgument(_repeated(kind))
    if kind not in _ORIGINS and kind not in of_users:
        raise InvalidArgument(_no_rows(repr(kind)))
    # Below the inputs lie the datasets that a stage itself reads.
    width = len(of_users[kind].inputs) if kind in of_users else 1
    below = description["of"] if kind in _SEVERAL else description["of"][:width]
    inputs = tuple(_described(each, of_users) for each in below)
    names = description.get("names") or range(len(inputs))
    if kind in of_users:
        return Joint(kind, inputs, tuple(names), of_users[kind].origins, of_users[kind].held)
    return Joint(kind, inputs, tuple(names), _ORIGINS[kind], _HELD.get(kind, _nothing))


def _itself(token: Token) -> Sequence[tuple[int, Token]]:
    return ((0, token),)


def _nothing(_: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
    return ()


def _each(token: Token) -> Sequence[tuple[int, Token]]:
    return [(0, each) for each in token]


def _pieces(token: Token) -> Sequence[tuple[int, Token]]:
    return [(0, piece[0]) for piece in token]


def _outer(memory: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
    return [(0, as_token(memory["outer"]))] if "inner" in memory else []


def _document(memory: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
    return [(0, as_token(memory["document"]))] if "document" in memory else []


_ORIGINS: Mapping[str, Origins] = {
    **dict.fromkeys(("filter", "map", "overlay", "shuffle", "skip", "take"), _itself),
    **dict.fromkeys(("batch", "bucket"), _each),
    **dict.fromkeys(("pack-best-fit", "pack-concat"), _pieces),
    **dict.fromkeys(("chain", "mix", "mix-open"), lambda token: [(token[0], token[1])]),
    "flatten": lambda token: [(0, token[0])],
    "zip": lambda token: list(enumerate(token)),
}
"""What a token of each kind of stage was made of, as the stages' own ``origins`` say."""

_HELD: Mapping[str, Held] = {"flatten": _outer, "pack-best-fit": _document, "pack-concat": _document}
"""What the memory of each kind of stage holds, as their own ``held`` say."""

_SEVERAL = frozenset({"chain", "mix", "mix-open", "zip"})


def _repeated(what: object) -> str:
    return (
        f"resume='rows' counts the rows of epochs, and {what!r} begins its input anew: say how many epochs "
        f"with ds.stream(epochs=) instead"
    )


def _no_rows(what: str) -> str:
    return (
        f"resume='rows' needs sources with rows and stages that are known here, and {what} is none: such a "
        f"stream is resumed exactly"
    )
