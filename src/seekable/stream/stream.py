"""The public class of streams: iteration, tokens, and a method for each stage over one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from seekable._arguments import POSITIONS, checked_choice, checked_count, checked_flag, checked_seed
from seekable._lazy import lazy
from seekable._other_words import STREAM, no_attribute
from seekable.errors import EndlessDataset, InvalidArgument, WrongType
from seekable.nodes.display import listed, preformatted
from seekable.nodes.node import HoldsNode, node_of
from seekable.stream.batch import BatchItems, Bucket, CostLimit, checked_boundaries, checked_cost
from seekable.stream.iterator import StreamIterator, check_resumable
from seekable.stream.lineage import OWN_KINDS
from seekable.stream.map import FilterItems, Flatten, MapItems
from seekable.stream.overlay import Overlay, checked_partners
from seekable.stream.pack import PackBestFit, PackConcat, PackOptions, aligned_keys
from seekable.stream.shapes import OneInput, located, rebuilt
from seekable.stream.stage import described
from seekable.stream.take import RepeatItems, ShuffleItems, SkipSlots, TakeSlots
from seekable.stream.token import as_token
from seekable.stream.zip import Chain
from seekable.writing.write_methods import WriteMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seekable.stream import lane_items
    from seekable.stream.stage import Stage
    from seekable.writing import write_stream
    from seekable.writing.write_source import WriteSource
else:
    lane_items = lazy("seekable.stream.lane_items")
    write_stream = lazy("seekable.writing.write_stream")

__all__ = ["Stream"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Stream(WriteMethods):
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

    if not TYPE_CHECKING:  # Type checkers know that other names are not there.

        def __getattr__(self, name: str) -> Any:
            """Raise an error that names what other libraries call otherwise; it is called for no other name.

            Raises:
                AttributeError: there is no such attribute.
            """
            raise no_attribute(self, name, STREAM)

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

    def _to_write(self, call: str) -> WriteSource:
        if self.stage.endless:
            raise EndlessDataset(
                f"{call} needs a stream that ends, and {self.stage!r} never does: give stream(epochs=1), or "
                f"take(n), which ends after n slots"
            )
        check_resumable(self.stage)
        return write_stream.stream_source(lane_items.StreamItems(self.stage))

    def then(self, stage: OneInput) -> Stream:
        """Return the stream with a stage of your own at its end.

        Args:
            stage: an object of a frozen dataclass that is derived from ``seekable.stream.OneInput`` (or
                ``SameTokens``, ``SameItems``). It is made without an input: this stream becomes its input.

        Raises:
            WrongType: ``stage`` is not such an object.
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

    def map(
        self,
        fn: Callable[..., Any],
        *,
        rng: bool = False,
        seed: int | None = None,
        version: str | int | None = None,
    ) -> Stream:
        """Return ``fn(item)`` for each item.

        Args:
            fn: the function; its qualified name enters the fingerprint, its code does not.
            rng: call ``fn(item, rng)`` with a ``numpy.random.Generator`` that is keyed by the seed and the
                item's token. The generator is valid only during the call.
            seed: ``0 <= seed < 2**64``; required with ``rng=True``, refused without.
            version: enters the fingerprint; change it when the function returns something else.

        Raises:
            InvalidArgument: an argument breaks a rule, or the function has no name.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(["a", "b"]).stream(epochs=1).map(str.upper))
            ['A', 'B']
        """
        if checked_flag("rng", rng) != (seed is not None):
            raise InvalidArgument(f"seed= is for rng=True, which needs it (got rng={rng}, seed={seed!r})")
        return self.then(MapItems(fn, None if seed is None else checked_seed(seed), version))

    def filter(self, fn: Callable[[Any], object], *, version: str | int | None = None) -> Stream:
        """Return the items for which ``fn(item)`` is true.

        An endless stream raises ``NothingPassed`` where no item passes in any lane during a whole epoch of
        its sources. A lane that gets the same rows in each epoch, none of which passes, leaves its slots
        empty, and the log says so.

        Args:
            fn: the function; its qualified name enters the fingerprint, its code does not.
            version: enters the fingerprint; change it when the function passes other items.

        Raises:
            InvalidArgument: the function has no name.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(9)).stream(epochs=1).filter(lambda n: n % 4 == 0))
            [0, 4, 8]
        """
        return self.then(FilterItems(fn, version))

    def flatten(
        self, fn: Callable[[Any], Iterable[Any]] | None = None, *, version: str | int | None = None
    ) -> Stream:
        """Return the items of ``fn(item)``, none or several, for each item; without ``fn`` those of the item.

        A token is the pair of the outer item's token and the index of the item in it.

        Args:
            fn: called once for each item, and once more after a resume in the middle of an item.
            version: enters the fingerprint; change it when the function returns something else.

        Raises:
            InvalidArgument: the function has no name.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(["to be", "or"]).stream(epochs=1).flatten(str.split))
            ['to', 'be', 'or']
        """
        return self.then(Flatten(fn, version))

    def shuffle(self, *, buffer: int, seed: int) -> Stream:
        """Return the items in random order, each drawn from a buffer of the items that come next.

        For a dataset, ``ds.shuffle(seed)`` before ``stream()`` shuffles all records and needs no buffer.

        Args:
            buffer: the number of items of each lane that wait.
            seed: ``0 <= seed < 2**64``.

        Raises:
            InvalidArgument: an argument breaks a rule.

        Example:
            >>> import seekable as sk
            >>> sorted(sk.from_sequence(range(5)).stream(epochs=1).shuffle(buffer=3, seed=1))
            [0, 1, 2, 3, 4]
        """
        return self.then(ShuffleItems(checked_count("buffer", buffer, least=1), checked_seed(seed)))

    def overlay(
        self,
        other: HoldsNode,
        fn: Callable[..., Any],
        *,
        prob: float,
        seed: int,
        partners: int | tuple[int, int] | Literal["endless"] | None = None,
        version: str | int | None = None,
    ) -> Stream:
        """Return the items, some of them combined with records of another dataset: speech with noise, say.

        The seed and the items' tokens alone decide which items are combined, and with which records.

        Args:
            other: the dataset of the partners. An item whose partners are all holes stays as it is.
            fn: ``fn(item, partner, rng)``, with a ``numpy.random.Generator`` that is valid during the call.
                With ``partners=`` the second argument is a list, or an iterator.
            prob: the share of items that are combined, 0 to 1.
            seed: ``0 <= seed < 2**64``.
            partners: how many records an item is combined with, as a list: a number, or a pair of the least
                and the most, between which the number is drawn; holes are left out. ``"endless"`` is an
                iterator that reads another record at each step, so that ``fn`` takes as many as it needs, and
                is valid during the call. None is one record, and no list.
            version: enters the fingerprint; change it when the function returns something else.

        Raises:
            WrongType: ``other`` is not a dataset.
            EndlessDataset: ``other`` has no length.
            InvalidArgument: an argument breaks a rule, or ``other`` is empty.

        Example:
            >>> import seekable as sk
            >>> noise = sk.from_sequence(["hum"])
            >>> speech = sk.from_sequence(["yes", "no"]).stream(epochs=1)
            >>> list(speech.overlay(noise, lambda item, partner, rng: f"{item}+{partner}", prob=1, seed=0))
            ['yes+hum', 'no+hum']
            >>> list(speech.overlay(noise, lambda word, hums, rng: (word, *hums), partners=2, prob=1, seed=0))
            [('yes', 'hum', 'hum'), ('no', 'hum', 'hum')]
        """
        if not isinstance(other, HoldsNode):
            raise WrongType(f"overlay() draws partners from a Dataset (got {type(other).__name__})")
        if not isinstance(prob, int | float) or not 0 <= prob <= 1:
            raise InvalidArgument(f"prob must be a number of 0 to 1 (got {prob!r})")
        return self.then(
            Overlay(node_of(other), fn, float(prob), checked_seed(seed), version, checked_partners(partners))
        )

    def repeat(self, n: int | None = None) -> Stream:
        """Return the stream ``n`` times, each time with the same items; for ever without ``n``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("ab").stream(epochs=1).repeat(2))
            ['a', 'b', 'a', 'b']
        """
        return self.then(RepeatItems(None if n is None else checked_count("n", n, least=0)))

    def take(self, n: int) -> Stream:
        """Return the items of the first ``n`` slots, counted over all lanes.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").stream().take(5))
            ['a', 'b', 'c', 'a', 'b']
        """
        return self.then(TakeSlots(checked_count("n", n, least=0)))

    def skip(self, n: int) -> Stream:
        """Return the items after those of the first ``n`` slots, counted over all lanes.

        Items stay in their lanes: lane 0 has the first slot again, even if the lanes do not divide ``n``.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").stream(epochs=1).skip(2))
            ['c']
        """
        return self.then(SkipSlots(checked_count("n", n, least=0)))

    def batch(self, k: int) -> Stream:
        """Return lists of ``k`` consecutive items; the last list of a lane may be shorter.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").stream(epochs=1).batch(2))
            [['a', 'b'], ['c']]
        """
        return self.then(BatchItems(checked_count("k", k, least=1)))

    def pack(  # noqa: PLR0913 - each says another thing
        self,
        length: int,
        *,
        key: str | None = None,
        method: Literal["concat", "best_fit"] = "concat",
        align: Sequence[str] | Mapping[str, int] = (),
        separator: int | None = None,
        pad: int = 0,
        long: Literal["split", "truncate", "drop"] = "split",
        bins: int = 64,
        end: Literal["pad", "drop"] = "pad",
    ) -> Stream:
        """Return sequences of ``length`` tokens, made of documents.

        Args:
            length: the number of tokens of a sequence.
            key: the key of the tokens in items that are dicts; None if the items are arrays themselves.
            method: ``"concat"`` puts documents one after another and cuts, so that nothing is wasted;
                ``"best_fit"`` cuts no document that fits into a sequence, and pads.
            align: keys of arrays that are as long as the tokens and packed alongside, such as loss masks. A
                dict gives the value that each of them has at a separator, ``{"loss_mask": 1}``; with a list
                that value is 0. In padding, aligned arrays are 0.
            separator: a token to put after each document.
            pad: the token that fills the rest of a sequence.
            long: split, truncate or drop a document that is longer than a sequence.
            bins: the number of sequences of a lane that ``"best_fit"`` keeps open.
            end: when a lane has no more documents, ``"pad"`` fills up its last sequence (all that
                ``"best_fit"`` has open) with ``pad``; ``"drop"`` leaves it out, and its tokens with it.

        Returns:
            A stream of dicts of arrays of shape ``(length,)``: ``"tokens"`` (the integer type of the
            documents), ``"segment_ids"`` (int32, from 1 in each sequence, 0 for padding), ``"positions"``
            (int32, from 0 in each segment), and the aligned arrays under their keys.

        Raises:
            WrongType: an argument is of another type.
            InvalidArgument: an argument breaks a rule; or, from the iterator, an item is not a document.

        Example:
            >>> import seekable as sk
            >>> documents = sk.from_sequence([[1, 2, 3], [4, 5], [6]], version="1").stream(epochs=1)
            >>> [(each["tokens"].tolist(), each["segment_ids"].tolist()) for each in documents.pack(4)]
            [([1, 2, 3, 4], [1, 1, 1, 2]), ([5, 6, 0, 0], [1, 2, 0, 0])]
        """
        checked_choice("long", long, ("split", "truncate", "drop"))
        checked_choice("end", end, ("pad", "drop"))
        checked_choice("method", method, ("concat", "best_fit"))
        if key is not None and not isinstance(key, str):
            raise WrongType(f"key must be the name of a field, or None (got {key!r})")
        if separator is not None:
            separator = checked_count("separator", separator, least=-POSITIONS)
        names, ends = aligned_keys(align)
        options = PackOptions(
            checked_count("length", length, least=1),
            key,
            names,
            ends,
            separator,
            checked_count("pad", pad, least=-POSITIONS),
            long,
            end,
        )
        if method == "concat":
            return self.then(PackConcat(options))
        return self.then(PackBestFit(options, checked_count("bins", bins, least=1)))

    def bucket(  # noqa: PLR0913 - each says another thing
        self,
        cost: Callable[[Any], float],
        *,
        max_cost: float,
        seed: int,
        boundaries: Sequence[float] | None = None,
        buckets: int = 30,
        buffer: int = 10_000,
        padded: bool = False,
        quadratic: float | None = None,
        max_items: int | None = None,
        version: str | int | None = None,
    ) -> Stream:
        """Return batches (lists) of items of similar cost, such as durations or token counts.

        A hash of the seed and the batch's number in its lane prefers a bucket: so all lanes, and all ranks,
        take batches of similar items in the same step.

        Args:
            cost: returns the cost of an item, a finite number of at least 0.
            max_cost: the most a batch may cost; an item that costs more is a batch of its own, and the
                log warns of the first one in each lane.
            seed: ``0 <= seed < 2**64``.
            boundaries: the costs at which the next bucket begins; estimated from the first items by default.
            buckets: the number of buckets to estimate.
            buffer: the number of items of each lane that wait, and from which buckets are estimated.
            padded: count each item with the cost of the most costly item in its batch.
            quadratic: the cost at which an item counts twice, ``c + c * c / quadratic``, as with attention.
            max_items: the most items that a batch may have.
            version: enters the fingerprint; change it when ``cost`` returns other numbers.

        Raises:
            InvalidArgument: an argument breaks a rule; or, from the iterator, a cost is not such a number.
            NothingPassed: from the iterator, there are no items from which buckets could be estimated.

        Example:
            >>> import seekable as sk
            >>> words = sk.from_sequence(["a", "bb", "c", "dd", "e"]).stream(epochs=1)
            >>> sorted(words.bucket(len, max_cost=4, seed=0, boundaries=[2], buffer=5))
            [['a', 'c', 'e'], ['bb', 'dd']]
        """
        limit = CostLimit(
            checked_cost("max_cost", max_cost),
            checked_flag("padded", padded),
            None if quadratic is None else checked_cost("quadratic", quadratic),
            None if max_items is None else checked_count("max_items", max_items, least=1),
        )
        return self.then(
            Bucket(
                cost,
                limit,
                None if boundaries is None else checked_boundaries(boundaries),
                checked_count("buckets", buckets, least=1),
                checked_count("buffer", buffer, least=1),
                checked_seed(seed),
                version,
            )
        )


def _checked_stage(stage: OneInput) -> OneInput:
    name = type(stage).__name__
    if isinstance(stage, type) and issubclass(stage, OneInput):
        raise WrongType(f"then() takes a stage, not its class: write then({stage.__name__}(...))")
    if not isinstance(stage, OneInput):
        raise WrongType(
            f"then() takes a stage over one input, an object of a class that is derived from "
            f"seekable.stream.OneInput (got {name})"
        )
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
        raise InvalidArgument(f"this {name} has an input already: make a new one for each then()")
    return stage


def _lines(stage: Stage, indent: str) -> list[str]:
    """Return the lines of a stage and of all stages below it."""
    arguments = listed([f"{key}={value!r:.60}" for key, value in stage.arguments().items()])
    lines = [f"{indent}{stage.kind}({arguments})"]
    for source in stage.inputs:
        lines += _lines(source, f"{indent}  ")
    return lines
