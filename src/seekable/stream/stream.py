"""The public class of streams: iteration, tokens, and stages of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from seekable._lazy import lazy
from seekable.errors import EndlessDataset, InvalidArgument, WrongType
from seekable.nodes.display import listed, preformatted
from seekable.stream.chain import Chain
from seekable.stream.iterator import StreamIterator, check_resumable
from seekable.stream.kinds import OWN_KINDS
from seekable.stream.methods import StageMethods
from seekable.stream.rebuild import located, rebuilt
from seekable.stream.shapes import OneInput
from seekable.stream.stage import described
from seekable.stream.token import as_token
from seekable.writing.methods import WriteMethods

if TYPE_CHECKING:
    from seekable.stream import lane_items
    from seekable.stream.stage import Stage
    from seekable.writing import write_stream
    from seekable.writing.source import Source
else:
    lane_items = lazy("seekable.stream.lane_items")
    write_stream = lazy("seekable.writing.write_stream")

__all__ = ["Stream"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Stream(StageMethods, WriteMethods):
    """A sequence of items whose order may depend on their content; it resumes exactly after each item.

    A stream is an immutable description: ``iter(stream)`` begins at its first item, and only an iterator
    holds a position. Each item has a token, which identifies it: ``stream[token]`` is that item again.

    Example:
        >>> import seekable as sk
        >>> stream = sk.from_sequence(range(10)).stream(epochs=1).filter(lambda number: number % 3 == 0)
        >>> iterator = iter(stream)
        >>> next(iterator), next(iterator), iterator.token, stream[iterator.token]
        (0, 3, 3, 3)
        >>> again = iter(stream)
        >>> again.load_state_dict(iterator.state_dict())
        >>> list(again)
        [6, 9]
    """

    stage: Stage
    """The last stage of the graph."""

    def __iter__(self) -> StreamIterator:
        """Return a new iterator, which stands before the first item."""
        return StreamIterator(self.stage)

    def __add__(self, other: Stream) -> Stream:
        """Return ``sk.concat([self, other])``: in each lane the items of this stream, then those of another.

        Raises:
            WrongType: ``other`` is no Stream.
            InvalidArgument: the streams have different numbers of lanes.

        Example:
            >>> import seekable as sk
            >>> one, other = (sk.from_sequence(text).stream(epochs=1) for text in ("ab", "cd"))
            >>> list(one + other)
            ['a', 'b', 'c', 'd']
        """
        if not isinstance(other, Stream):
            message = f"a Stream + takes another Stream (got a {type(other).__name__}): "
            raise WrongType(message + "dataset.stream() makes one of a dataset")
        return Stream(Chain((self.stage, other.stage)))

    def __getitem__(self, token: Any) -> Any:
        """Return the item of a token.

        Args:
            token: what ``token`` of an iterator was after the item, also after a JSON round trip.

        Raises:
            BadToken: the stream has no such item (a KeyError).
        """
        return rebuilt(self.stage, [as_token(token)])[0]

    def locate(self, token: Any) -> list[Any]:
        """Return a ``Location`` for each record that the item of a token was made of.

        Raises:
            BadToken: the stream has no such item (a KeyError).
        """
        return located(self.stage, as_token(token))

    @property
    def fingerprint(self) -> str:
        """The digest of everything that decides the stream's items and their order."""
        return self.stage.fingerprint

    def describe(self) -> dict[str, Any]:
        """Return a JSON-safe description of everything that decides the items and their order."""
        return described(self.stage)

    def explain(self) -> str:
        """Return the stream as a tree: one line for each stage, with its arguments."""
        return "\n".join(_lines(self.stage, ""))

    @property
    def lanes(self) -> int:
        """The number of lanes. At most as many ranks can share the stream."""
        return self.stage.lanes

    @property
    def endless(self) -> bool:
        """True if the stream never ends, provided that it passes any item at all."""
        return self.stage.endless

    @property
    def indexed(self) -> bool:
        """True if ``stream[token]`` can return any item again."""
        return self.stage.indexed

    @property
    def checkpointable(self) -> bool:
        """True if the stream resumes exactly; if False, ``state_dict()`` raises ``NotResumable``."""
        return self.stage.checkpointable

    @property
    def constant_time(self) -> bool:
        """True if ``stream[token]`` and a resume take equally long at any position.

        False of a stream whose items cannot be made again from tokens, even if it resumes at once.
        """
        return self.stage.constant_time and self.stage.indexed

    def __repr__(self) -> str:
        """Return the number of lanes, and the expression that makes the stream."""
        return repr(self.stage)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the tree of ``explain``. No item is made."""
        return preformatted(self.explain, self)

    def _to_write(self, call: str) -> Source:
        if self.stage.endless:
            message = (
                f"{call} needs a stream that ends, and {self.stage!r} never does: give stream(epochs=1), or "
                f"take(n), which ends after n slots"
            )
            raise EndlessDataset(message)
        check_resumable(self.stage)
        return write_stream.stream_source(lane_items.StreamItems(self.stage))

    def then(self, stage: OneInput) -> Stream:
        """Return the stream with a stage of your own at its end.

        Args:
            stage: an object of a frozen dataclass that is derived from ``seekable.stream.OneInput`` (or
                ``SameTokens``, ``SameItems``). It is made without an input: this stream becomes its input.

        Raises:
            WrongType: ``stage`` is no such object.
            InvalidArgument: the stage has an input already, or its class has no ``kind`` of its own.

        Example:
            >>> from dataclasses import dataclass
            >>> import seekable as sk
            >>> from seekable.stream import SameItems
            >>> @dataclass(frozen=True, eq=False, repr=False)
            ... class Printed(SameItems):
            ...     kind = "mylib.printed"
            ...     def arguments(self):
            ...         return {}
            ...     def shown(self, inputs):
            ...         return f"{inputs[0]}.then(Printed())"
            ...     def items(self, lane):
            ...         for token, item in lane.inputs[0]:
            ...             print(f"lane {lane.number}, token {token}: {item}")
            ...             yield token, item
            >>> list(sk.from_sequence("ab").stream(epochs=1).then(Printed()))
            lane 0, token 0: a
            lane 0, token 1: b
            ['a', 'b']
        """
        return Stream(_checked_stage(stage).with_inputs([self.stage]))


def _checked_stage(stage: OneInput) -> OneInput:
    name = type(stage).__name__
    if isinstance(stage, type) and issubclass(stage, OneInput):
        message = f"then() takes a stage, not its class: write then({stage.__name__}(...))"
        raise WrongType(message)
    if not isinstance(stage, OneInput):
        message = (
            f"then() takes a stage over one input, an object of a class that is derived from "
            f"seekable.stream.OneInput (got {name})"
        )
        raise WrongType(message)
    if "__dataclass_params__" not in vars(type(stage)):
        message = f"a stage is a frozen dataclass: put @dataclass(frozen=True, eq=False) above class {name}"
        raise WrongType(message)
    if not isinstance(getattr(stage, "kind", None), str):
        message = f"{name} needs a name for fingerprints: kind: ClassVar[str] = 'mylib.{name.lower()}'"
        raise InvalidArgument(message)
    if OWN_KINDS.get(stage.kind, type(stage)) is not type(stage):
        message = f"kind {stage.kind!r} of {name} is one of the library's: use 'mylib.{stage.kind}'"
        raise InvalidArgument(message)
    if stage.source is not None:
        message = f"this {name} has an input already: make a new one for each then()"
        raise InvalidArgument(message)
    return stage


def _lines(stage: Stage, indent: str) -> list[str]:
    """Return the lines of a stage and of all stages below it."""
    arguments = listed([f"{key}={value!r:.60}" for key, value in stage.arguments().items()])
    lines = [f"{indent}{stage.kind}({arguments})"]
    for source in stage.inputs:
        lines += _lines(source, f"{indent}  ")
    return lines
