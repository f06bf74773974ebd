"""The stages as methods, so that a stream reads from left to right.

Each method imports its stage inside: stages are streams, so they import this class.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, cast

from seekable._arguments import checked_count, checked_flag, checked_seed
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seekable.dataset.base import Dataset
    from seekable.stream.base import Stream

__all__ = ["StreamFluent"]


class StreamFluent:
    """What every stream can be made into; nothing is read, and the stream itself stays as it is."""

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
            fn: it enters the fingerprint by qualified name, not by its code.
            rng: call ``fn(item, rng)`` with a ``numpy.random.Generator`` that is keyed by the seed and the
                item's token, and valid only during the call.
            seed: required with ``rng``, refused without.
            version: enters the fingerprint; change it when the function changes what it returns.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(["a", "b"]).stream(epochs=1).map(str.upper))
            ['A', 'B']
        """
        from seekable.stream.map import MapItems

        if checked_flag("rng", rng) != (seed is not None):
            message = f"seed= is for rng=True, which needs it (got rng={rng}, seed={seed!r})"
            raise InvalidArgument(message)
        return MapItems(self._self, fn, None if seed is None else checked_seed(seed), version)

    def filter(self, fn: Callable[[Any], object], *, version: str | int | None = None) -> Stream:
        """Return the items of which ``fn(item)`` is true.

        Where there is no end, an epoch of the sources of which nothing passes is ``NothingPassed``, and not a
        hang.

        Args:
            fn: it enters the fingerprint by qualified name, not by its code.
            version: enters the fingerprint; change it when the function passes others.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(9)).stream(epochs=1).filter(lambda n: n % 4 == 0))
            [0, 4, 8]
        """
        from seekable.stream.filter import FilterItems

        return FilterItems(self._self, fn, version)

    def flatten(
        self, fn: Callable[[Any], Iterable[Any]] | None = None, *, version: str | int | None = None
    ) -> Stream:
        """Return the items of ``fn(item)``, none or several, for each item; without ``fn`` those of the item.

        A token is the pair of the outer item's token and the number in it.

        Args:
            fn: called once for an item that is gone through, and once more where it is resumed in the middle
                of one.
            version: enters the fingerprint; change it when the function changes what it returns.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(["to be", "or"]).stream(epochs=1).flatten(str.split))
            ['to', 'be', 'or']
        """
        from seekable.stream.flatten import Flatten

        return Flatten(self._self, fn, version)

    def shuffle(self, *, buffer: int, seed: int) -> Stream:
        """Return the items in an order that is random within a buffer of those that come next.

        Where the source is a dataset, ``ds.shuffle(seed)`` before ``stream()`` shuffles all of it, and needs
        no buffer.

        Args:
            buffer: how many items of each lane wait.
            seed: ``0 <= seed < 2**64``.

        Example:
            >>> import seekable as sk
            >>> sorted(sk.from_sequence(range(5)).stream(epochs=1).shuffle(buffer=3, seed=1))
            [0, 1, 2, 3, 4]
        """
        from seekable.stream.shuffle import ShuffleItems

        return ShuffleItems(self._self, checked_count("buffer", buffer, least=1), checked_seed(seed))

    def overlay(
        self,
        other: Dataset,
        fn: Callable[..., Any],
        *,
        prob: float,
        seed: int,
        version: str | int | None = None,
    ) -> Stream:
        """Return the items, some of them combined with a record of another dataset: speech with noise, say.

        Which items, and with which records, depends on the seed and the items' tokens alone.

        Args:
            other: the dataset that partners are drawn from; a hole among them leaves the item as it is.
            fn: ``fn(item, partner, rng)``, with a ``numpy.random.Generator`` that is valid during the call.
            prob: the share of items that are combined, 0 to 1.
            seed: ``0 <= seed < 2**64``.
            version: enters the fingerprint; change it when the function changes what it returns.

        Example:
            >>> import seekable as sk
            >>> noise = sk.from_sequence(["hum"])
            >>> speech = sk.from_sequence(["yes", "no"]).stream(epochs=1)
            >>> list(speech.overlay(noise, lambda item, partner, rng: f"{item}+{partner}", prob=1, seed=0))
            ['yes+hum', 'no+hum']
        """
        from seekable.dataset.base import Dataset
        from seekable.stream.overlay import Overlay

        if not isinstance(other, Dataset):
            message = f"overlay() draws partners from a Dataset (got {type(other).__name__})"
            raise WrongType(message)
        if not isinstance(prob, int | float) or not 0 <= prob <= 1:
            message = f"prob must be a number of 0 to 1 (got {prob!r})"
            raise InvalidArgument(message)
        return Overlay(self._self, other, fn, float(prob), checked_seed(seed), version)

    def repeat(self, n: int | None = None) -> Stream:
        """Return the stream ``n`` times, or for ever; each time it is the same.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("ab").stream(epochs=1).repeat(2))
            ['a', 'b', 'a', 'b']
        """
        from seekable.stream.repeat import RepeatItems

        return RepeatItems(self._self, None if n is None else checked_count("n", n, least=0))

    def take(self, n: int) -> Stream:
        """Return the items of the first ``n`` slots, over all lanes.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").stream().take(5))
            ['a', 'b', 'c', 'a', 'b']
        """
        from seekable.stream.take import TakeSlots

        return TakeSlots(self._self, checked_count("n", n, least=0))

    def skip(self, n: int) -> Stream:
        """Return the items after those of the first ``n`` slots, over all lanes.

        Items stay in their lanes: also where these do not divide ``n``, lane 0 has the first slot again.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").stream(epochs=1).skip(2))
            ['c']
        """
        from seekable.stream.take import SkipSlots

        return SkipSlots(self._self, checked_count("n", n, least=0))

    def batch(self, k: int) -> Stream:
        """Return lists of ``k`` consecutive items of a lane, the last of a lane shorter.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence("abc").stream(epochs=1).batch(2))
            [['a', 'b'], ['c']]
        """
        from seekable.stream.batch import BatchItems

        return BatchItems(self._self, checked_count("k", k, least=1))

    def pack(  # noqa: PLR0913 - each says another thing
        self,
        length: int,
        *,
        key: str | None = None,
        method: Literal["concat", "best_fit"] = "concat",
        align: Sequence[str] = (),
        separator: int | None = None,
        pad: int = 0,
        long: Literal["split", "truncate", "drop"] = "split",
        bins: int = 64,
    ) -> Stream:
        """Return sequences of ``length`` tokens, made of documents.

        Args:
            length: tokens of a sequence.
            key: where an item, a dict, has its tokens; None if the items are arrays themselves.
            method: ``"concat"`` puts documents one after another and cuts, so that nothing is wasted;
                ``"best_fit"`` cuts none that is not longer than a sequence, and pads.
            align: keys of arrays as long as the tokens, loss masks say, that are packed alongside.
            separator: a token that is put after each document.
            pad: the token of places that are left over.
            long: whether a document longer than a sequence is split, truncated or dropped.
            bins: how many sequences of a lane ``"best_fit"`` may keep open.

        Returns:
            A stream of dicts of arrays of ``length``: ``"tokens"``, ``"segment_ids"`` (int32, counted from 1
            in each sequence, 0 where it is padded), ``"positions"`` (int32, in the segment), and
            those that were aligned.

        Example:
            >>> import seekable as sk
            >>> documents = sk.from_sequence([[1, 2, 3], [4, 5], [6]], version="1").stream(epochs=1)
            >>> [(each["tokens"].tolist(), each["segment_ids"].tolist()) for each in documents.pack(4)]
            [([1, 2, 3, 4], [1, 1, 1, 2]), ([5, 6, 0, 0], [1, 2, 0, 0])]
        """
        from seekable.stream.pack import PackBestFit, PackConcat
        from seekable.stream.packing import Layout

        if long not in ("split", "truncate", "drop"):
            message = f"long must be 'split', 'truncate' or 'drop' (got {long!r})"
            raise InvalidArgument(message)
        layout = Layout(checked_count("length", length, least=1), key, tuple(align), separator, pad)
        if method == "concat":
            return PackConcat(self._self, layout, long)
        if method != "best_fit":
            message = f"method must be 'concat' or 'best_fit' (got {method!r})"
            raise InvalidArgument(message)
        return PackBestFit(self._self, layout, long, checked_count("bins", bins, least=1))

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
        """Return batches (lists) of items of similar cost: durations, or numbers of tokens.

        A hash of the seed and the batch's number in its lane prefers a bucket: so all lanes, and all ranks,
        take batches of similar items in the same step.

        Args:
            cost: what an item costs.
            max_cost: what a batch may cost; an item that costs more is a batch of its own.
            seed: ``0 <= seed < 2**64``.
            boundaries: the costs at which another bucket begins; estimated from the first items if left out.
            buckets: how many to estimate.
            buffer: how many items of each lane wait, and how many are estimated from.
            padded: count each item with the cost of the most costly one in its batch.
            quadratic: the cost at which an item counts twice, ``c + c * c / quadratic``, as with attention.
            max_items: how many items a batch may have.
            version: enters the fingerprint; change it when ``cost`` changes what it returns.

        Example:
            >>> import seekable as sk
            >>> words = sk.from_sequence(["a", "bb", "c", "dd", "e"]).stream(epochs=1)
            >>> sorted(words.bucket(len, max_cost=4, seed=0, boundaries=[2], buffer=5))
            [['a', 'c', 'e'], ['bb', 'dd']]
        """
        from seekable.stream.bucket import Bucket, Limit

        limit = Limit(
            checked_number("max_cost", max_cost),
            checked_flag("padded", padded),
            None if quadratic is None else checked_number("quadratic", quadratic),
            None if max_items is None else checked_count("max_items", max_items, least=1),
        )
        return Bucket(
            self._self,
            cost,
            limit,
            None if boundaries is None else ascending("boundaries", boundaries),
            checked_count("buckets", buckets, least=1),
            checked_count("buffer", buffer, least=1),
            checked_seed(seed),
            version,
        )

    @property
    def _self(self) -> Stream:
        return cast("Stream", self)


def checked_number(name: str, value: object) -> float:
    """Return a finite number above 0.

    Raises:
        InvalidArgument: it is none.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        message = f"{name} must be a finite number above 0 (got {value!r})"
        raise InvalidArgument(message)
    return float(value)


def ascending(name: str, values: Sequence[object]) -> tuple[float, ...]:
    """Return finite numbers, each greater than the one before.

    Raises:
        InvalidArgument: they are none.
    """
    numbers = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    if len(numbers) != len(values) or numbers != sorted(set(numbers)):
        message = f"{name} must be finite numbers that ascend (got {list(values)!r})"
        raise InvalidArgument(message)
    return tuple(map(float, numbers))
