"""The lineage of items: the rows of datasets that an item was made of, by its token alone.

A lineage is computed from the stages of a stream, or from a description in a saved state.

Where a stage makes several items of one, a row can be both delivered and waiting. ``resume="rows"`` counts
such a row as delivered, but the waiting items alone do not show it. So iterators record these rows
(`PartlyDelivered`), in graphs with such a stage only, until no item of the row waits any more.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, InvalidArgument
from seekable.stream.batch import BatchItems, Bucket
from seekable.stream.map import FilterItems, Flatten, MapItems
from seekable.stream.mix import MixBounded, MixItems
from seekable.stream.overlay import Overlay
from seekable.stream.pack import PackBestFit, PackConcat
from seekable.stream.shapes import OneInput
from seekable.stream.stage import Inner
from seekable.stream.take import RepeatItems, ShuffleItems, SkipSlots, TakeSlots
from seekable.stream.token import as_token
from seekable.stream.zip import Chain, ZipItems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seekable.stream.lane import StageState
    from seekable.stream.stage import Stage
    from seekable.stream.token import Token

    Name = tuple[str | int, ...]
    Origins = Callable[[Token], Sequence[tuple[int, Token]]]
    Held = Callable[[Mapping[str, Any]], Sequence[tuple[int, Token]]]
    Row = tuple[int, int]

__all__ = [
    "OWN_KINDS",
    "Lineage",
    "PartlyDelivered",
    "described_lineage",
    "lineage_of",
    "rows_given",
    "rows_held",
    "splitting_lineage",
]

OWN_KINDS: Mapping[str, type[Inner]] = {
    each.kind: each
    for each in (
        *(BatchItems, Bucket, Chain, FilterItems, Flatten, MapItems, MixBounded, MixItems, Overlay),
        *(PackBestFit, PackConcat, RepeatItems, ShuffleItems, SkipSlots, TakeSlots, ZipItems),
    )
}
"""The library's stages with inputs, by kind."""


_SOURCE = "dataset"
"""The kind of the stages that have rows."""

_REPEAT = "repeat"
"""The kind of the stages whose items cannot be counted as rows of epochs."""


@dataclass(frozen=True, slots=True, eq=False)
class Lineage:
    """The lineage of one stage's items, over the lineages of its inputs."""

    kind: str
    """The kind of the stage."""

    inputs: tuple[Lineage, ...]

    names: tuple[str | int, ...]
    """The name of each input: the name in a mixture of named parts, otherwise the index."""

    origins: Origins
    """``Inner.origins`` of the stage."""

    held: Held
    """``Inner.held`` of the stage."""

    source: Any = None
    """The stage that reads a dataset, or its description; None for stages with inputs."""

    starts: tuple[int, ...] = field(init=False)
    """The number of sources before those of each input, and of all sources; (0, 1) for a source."""

    def __post_init__(self) -> None:
        """Count the sources below each input."""
        widths = [below.starts[-1] for below in self.inputs]
        object.__setattr__(self, "starts", (0, *itertools.accumulate(widths)) if widths else (0, 1))

    def all(self) -> Iterator[Lineage]:
        """Yield this lineage and all those below: a stage before its inputs, inputs in their order."""
        yield self
        for below in self.inputs:
            yield from below.all()

    def sources(self, name: Name = ()) -> Iterator[tuple[Name, Lineage]]:
        """Yield the lineages of the sources, each after its name: the names of the inputs that lead to it."""
        if not self.inputs:
            yield name, self
        for own, below in zip(self.names, self.inputs, strict=True):
            yield from below.sources((*name, own) if len(self.inputs) > 1 else name)

    def rows(self, token: Token, first: int = 0) -> Iterator[tuple[int, int]]:
        """Yield the rows that an item was made of, as pairs of a source's index and a position there.

        Args:
            token: the token of the item.
            first: the index of the first source.
        """
        if not self.inputs:
            yield first, token
            return
        for index, origin in self.origins(token):
            yield from self.inputs[index].rows(origin, first + self.starts[index])


def rows_held(root: Lineage, states: Sequence[StageState]) -> list[tuple[int, int]]:
    """Return the rows of all items that wait in the stages of one lane, without repetitions, oldest first.

    Args:
        root: the lineage of the stream.
        states: the states of the lane's stages, in the order of ``root.all()``.

    Raises:
        CorruptState: there are more or fewer states than stages.
    """
    lineages = list(root.all())
    if len(lineages) != len(states):
        raise CorruptState(f"the state of a lane must have {len(lineages)} stages (got {len(states)})")
    found: dict[tuple[int, int], None] = {}
    before = 0
    for lineage, state in zip(lineages, states, strict=True):
        waiting = [(0, as_token(token)) for token in state.tokens]
        for number, token in (*waiting, *lineage.held(state.values)):
            found.update(dict.fromkeys(lineage.inputs[number].rows(token, before + lineage.starts[number])))
        before += not lineage.inputs
    return list(found)


def lineage_of(stage: Stage) -> Lineage:
    """Return the lineage of a stream, given its last stage.

    Raises:
        InvalidArgument: the rows of a stage cannot be counted.
    """
    if stage.kind == _REPEAT:
        raise InvalidArgument(_repeated(stage))
    if not isinstance(stage, Inner):
        if stage.kind != _SOURCE:
            raise InvalidArgument(_no_rows(repr(stage)))
        return _source(stage)
    inputs = tuple(map(lineage_of, stage.inputs))
    names = getattr(stage, "names", None) or range(len(inputs))
    return Lineage(stage.kind, inputs, tuple(names), stage.origins, stage.held)


def described_lineage(description: Mapping[str, Any], present: Stage | None = None) -> Lineage:
    """Return the lineage of a stream of which there is only the description.

    Args:
        description: what ``Stream.describe`` returned, also after a JSON round trip.
        present: the last stage of another stream. The classes of its stages resolve kinds that are not the
            library's.

    Raises:
        InvalidArgument: the rows of a stage cannot be counted, or its kind is unknown.
    """
    return _described(description, OWN_KINDS if present is None else {**_kinds(present), **OWN_KINDS})


def _kinds(stage: Stage) -> dict[str, type[Inner]]:
    """Return the classes of a stream's stages with inputs, by kind."""
    found = {stage.kind: type(stage)} if isinstance(stage, Inner) else {}
    for source in stage.inputs:
        found |= _kinds(source)
    return found


def _described(description: Mapping[str, Any], kinds: Mapping[str, type[Inner]]) -> Lineage:
    kind = description["kind"]
    if kind == _SOURCE:
        return _source(description)
    if kind == _REPEAT:
        raise InvalidArgument(_repeated(kind))
    if kind not in kinds:
        raise InvalidArgument(_no_rows(repr(kind)))
    stage = kinds[kind]
    # After the inputs come the datasets that a stage itself reads.
    below = description["of"][:1] if issubclass(stage, OneInput) else description["of"]
    inputs = tuple(_described(each, kinds) for each in below)
    names = description.get("names") or range(len(inputs))
    return Lineage(kind, inputs, tuple(names), stage.origins, stage.held)


def _source(source: Any) -> Lineage:
    """Return the lineage of a stage that reads a dataset, or of its description."""
    return Lineage(_SOURCE, (), (), lambda token: ((0, token),), lambda _: (), source)


def _repeated(what: object) -> str:
    return (
        f"resume='rows' counts the rows of epochs, and {what!r} begins its input anew: say how many epochs "
        f"with ds.stream(epochs=) instead"
    )


def _no_rows(what: str) -> str:
    return (
        f"resume='rows' needs sources with rows and stages that are known here, and {what} is not one of "
        f"them: such a stream is resumed exactly"
    )


_MOST_RECORDED = 1000
"""Rows of a lane that are recorded before the first search for rows of which nothing waits."""


def splitting_lineage(stage: Stage) -> Lineage | None:
    """Return the lineage of a stream in which a row can be partly delivered; None for any other stream.

    Example:
        >>> import seekable as sk
        >>> stream = sk.from_sequence("abc").stream()
        >>> splitting_lineage(stream.stage) is None, splitting_lineage(stream.flatten().stage) is None
        (True, False)
    """
    return lineage_of(stage) if _splits(stage) and _has_rows(stage) else None


class PartlyDelivered:
    """The partly delivered rows of some lanes, as pairs of a source's index and a position."""

    def __init__(self, lineage: Lineage | None, rows: Mapping[int, Iterable[Row]] | None = None) -> None:
        """Begin with the rows of a state; without a lineage there are never any."""
        self._lineage = lineage
        self._rows = {lane: set(some) for lane, some in (rows or {}).items()}
        self._most: dict[int, int] = {}

    def add(self, lane: int, rows: Iterable[Row], states: Callable[[], Sequence[StageState]]) -> None:
        """Record the rows of an item that a lane delivered.

        Args:
            lane: the index of the lane.
            rows: the rows that the item was made of.
            states: returns the states of the lane's stages after that item.
        """
        recorded = self._rows.setdefault(lane, set())
        recorded.update(rows)
        if len(recorded) > self._most.get(lane, _MOST_RECORDED):
            self._drop(lane, states())
            # A search takes time in proportion to the waiting rows, so the next one comes after as many more.
            self._most[lane] = _MOST_RECORDED + 2 * len(recorded)

    def forget(self, lane: int) -> None:
        """Drop the rows of a lane that has ended: what it gives from here on fills slots."""
        self._rows.pop(lane, None)

    def document(self, states: Mapping[int, Sequence[StageState]]) -> dict[str, Any] | None:
        """Return the rows as a JSON-safe dict of lanes; None if there are none.

        Args:
            states: the states of each lane's stages.
        """
        for lane in self._rows:
            self._drop(lane, states[lane])
        return {str(lane): sorted(map(list, some)) for lane, some in self._rows.items() if some} or None

    def _drop(self, lane: int, states: Sequence[StageState]) -> None:
        """Drop the rows of which no item waits."""
        if self._lineage is not None and self._rows[lane]:
            self._rows[lane].intersection_update(rows_held(self._lineage, states))


def rows_given(document: Mapping[str, Any] | None) -> dict[int, list[Row]]:
    """Return the rows that ``PartlyDelivered.document`` returned, for each lane.

    Raises:
        CorruptState: the document has another form.
    """
    try:
        return {
            int(lane): [(int(number), int(position)) for number, position in rows]
            for lane, rows in (document or {}).items()
        }
    except (TypeError, ValueError) as error:
        message = f"a state's 'given' has pairs of a source and a position for each lane ({error})"
        raise CorruptState(message) from error


def _splits(stage: Stage) -> bool:
    return (isinstance(stage, Inner) and stage.splits) or any(map(_splits, stage.inputs))


def _has_rows(stage: Stage) -> bool:
    """Return True if all sources are datasets, and no stage restarts them."""
    if not stage.inputs:
        return stage.kind == "dataset"
    return stage.kind != "repeat" and all(map(_has_rows, stage.inputs))
