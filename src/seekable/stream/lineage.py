"""The graph of a stream as far as its tokens go: which items those of a stage were made of.

It is told from the stream itself, or from a description alone, of the stages that there are here.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument
from seekable.stream.kinds import OWN_KINDS
from seekable.stream.shapes import OneInput
from seekable.stream.stage import Inner
from seekable.stream.token import as_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seekable.resume.sources import Name
    from seekable.stream.lane import StageState
    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

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


def rows_held(root: Joint, stages: Sequence[StageState]) -> list[tuple[int, int]]:
    """Return the rows of items that wait in the stages of one lane, each once, those first that came first.

    Args:
        root: the graph.
        stages: what the stages' states, in its order.

    Raises:
        CorruptState: they are those of another graph.
    """
    joints = list(root.all())
    if len(joints) != len(stages):
        message = f"the state of a lane must have {len(joints)} stages (got {len(stages)})"
        raise CorruptState(message)
    found: dict[tuple[int, int], None] = {}
    before = 0
    for joint, state in zip(joints, stages, strict=True):
        waiting = [(0, as_token(token)) for token in state.tokens]
        for slot, token in (*waiting, *joint.held(state.values)):
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
    names = getattr(stage, "names", None) or range(len(inputs))
    return Joint(stage.kind, inputs, tuple(names), stage.origins, stage.held)


def described_joint(description: Mapping[str, Any], present: Stage | None = None) -> Joint:
    """Return the graph of a stream that was described.

    Args:
        description: what ``describe`` returned.
        present: the last stage of a stream. Its stages resolve kinds that are not the library's.

    Raises:
        InvalidArgument: a stage has no rows that could be counted, or its kind is unknown.
    """
    return _described(description, OWN_KINDS if present is None else {**_kinds(present), **OWN_KINDS})


def _kinds(stage: Stage) -> dict[str, type[Inner]]:
    """Return the classes of all stages with inputs of a stream, by kind."""
    found = {stage.kind: type(stage)} if isinstance(stage, Inner) else {}
    for source in stage.inputs:
        found |= _kinds(source)
    return found


def _described(description: Mapping[str, Any], kinds: Mapping[str, type[Inner]]) -> Joint:
    kind = description["kind"]
    if kind == _SOURCE:
        return Joint(kind, (), (), _itself, _nothing, description)
    if kind == _REPEAT:
        raise InvalidArgument(_repeated(kind))
    if kind not in kinds:
        raise InvalidArgument(_no_rows(repr(kind)))
    stage = kinds[kind]
    # Behind the inputs come the datasets that a stage itself reads.
    below = description["of"][:1] if issubclass(stage, OneInput) else description["of"]
    inputs = tuple(_described(each, kinds) for each in below)
    names = description.get("names") or range(len(inputs))
    return Joint(kind, inputs, tuple(names), stage.origins, stage.held)


def _itself(token: Token) -> Sequence[tuple[int, Token]]:
    return ((0, token),)


def _nothing(_: Mapping[str, Any]) -> Sequence[tuple[int, Token]]:
    return ()


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
