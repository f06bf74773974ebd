"""Lists of items: consecutive ones (batch), or items of similar cost (bucket)."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable._cached import cached
from seekable._log import LOG
from seekable.errors import BadToken, InvalidArgument, NothingPassed
from seekable.order.keys import derive, kind_key
from seekable.state.functions import describe_function
from seekable.stream.lane import LaneIterator
from seekable.stream.shapes import OneInput, add_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token

__all__ = ["BatchItems", "Bucket", "CostLimit"]


class _Lists(OneInput):
    """A stage that makes lists of items. A token is the tuple of the items' tokens."""

    @staticmethod
    def origins(token: Token) -> Sequence[tuple[int, Token]]:
        """Return the items of the list.

        Raises:
            BadToken: the token is not a tuple of tokens.
        """
        if not isinstance(token, tuple) or not token:
            raise BadToken(f"a token of batch() or bucket() is a tuple of tokens (got {token!r})")
        return [(0, each) for each in token]

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the list of some items."""
        return list(items)


@final
@dataclass(frozen=True, eq=False, repr=False)
class BatchItems(_Lists):
    """Lists of ``size`` items; the last of a lane may be shorter. A token is the tuple of the tokens."""

    size: int

    kind: ClassVar[str] = "batch"

    def arguments(self) -> dict[str, Any]:
        """Return the size of the lists."""
        return {"size": self.size}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.batch`` as an expression."""
        return f"{inputs[0]}.batch({self.size})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Collect items; between two lists there is no state."""
        tokens: list[Token] = []
        batch: list[Any] = []
        for token, item in lane.inputs[0]:
            tokens.append(token)
            batch.append(item)
            if len(batch) == self.size:
                yield tuple(tokens), batch
                tokens, batch = [], []
        if batch:
            yield tuple(tokens), batch

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the list of some items.

        Raises:
            BadToken: the token has more tokens than a list has items.
        """
        if len(items) > self.size:
            message = f"a token of {self!r} is a tuple of at most {self.size} tokens (got {token!r:.200})"
            raise BadToken(message)
        return list(items)


_KIND = kind_key("bucket")


@dataclass(frozen=True, slots=True)
class CostLimit:
    """The limits of a batch: the sum of its items' costs, and their count.

    Example:
        >>> CostLimit(10, padded=True, quadratic=None, items=None).first_of([4, 3, 2, 1])
        2
    """

    cost: float
    padded: bool
    """True if each item counts with the cost of the most costly item of its batch."""

    quadratic: float | None
    """The cost at which an item counts twice: it counts ``c + c * c / quadratic``."""

    items: int | None

    def counted(self, cost: float) -> float:
        """Return the cost with which an item counts."""
        return cost if self.quadratic is None else cost + cost * cost / self.quadratic

    def first_of(self, costs: Sequence[float]) -> int:
        """Return the number of leading items that make a batch: at least one, and no more than is allowed."""
        total = most = 0.0
        for count, cost in enumerate(costs):
            each = self.counted(cost)
            most = max(most, each)
            total = most * (count + 1) if self.padded else total + each
            if count and (total > self.cost or (self.items is not None and count >= self.items)):
                return count
        return len(costs)

    def is_full(self, costs: Sequence[float]) -> bool:
        """Return True if some items fill a batch, or more than one."""
        if self.items is not None and len(costs) >= self.items:
            return True
        counted = [self.counted(cost) for cost in costs]
        total = max(counted, default=0.0) * len(counted) if self.padded else _total(counted)
        return total >= self.cost


@final
@dataclass(frozen=True, eq=False, repr=False)
class Bucket(_Lists):
    """Batches of items of similar cost: items wait in buckets by cost, and each batch comes from one bucket.

    A hash of (seed, k) prefers a bucket for batch ``k`` of a lane, the same bucket in all lanes. If the
    preferred bucket does not hold a whole batch, the nearest bucket that does gives the batch. Within
    a bucket items keep their order. A token is the tuple of the items' tokens.
    """

    cost: Callable[[Any], float]
    limit: CostLimit
    given: tuple[float, ...] | None
    """The costs at which the next bucket begins; None to estimate them."""

    buckets: int
    """The number of buckets to estimate."""

    size: int
    """The number of items of each lane that wait."""

    seed: int
    version: str | int | None

    kind: ClassVar[str] = "bucket"
    holds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a function without a name."""
        describe_function(self.cost, self.version)

    def arguments(self) -> dict[str, Any]:
        """Return the cost function's name, the limits, the buckets, the size of the buffer, and the seed."""
        limit = self.limit
        return {
            "cost": describe_function(self.cost, self.version),
            "limit": [limit.cost, limit.padded, limit.quadratic, limit.items],
            "boundaries": self.buckets if self.given is None else list(self.given),
            "buffer": self.size,
            "seed": self.seed,
        }

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``Stream.bucket`` as an expression."""
        name = describe_function(self.cost, self.version)["name"]
        return (
            f"{inputs[0]}.bucket({name}, max_cost={self.limit.cost:g}, buffer={self.size}, seed={self.seed})"
        )

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Keep the buffer full, and take batches out of it."""
        state, buffer = lane.state, lane.buffer()
        if "boundaries" not in state:
            state["boundaries"] = list(self.boundaries)
        boundaries = state["boundaries"]
        source = lane.inputs[0]
        waiting = _Waiting(len(boundaries) + 1, buffer.notes)
        ended = warned = False
        while True:
            for token, item in itertools.islice(source, max(0, self.size - len(buffer))):
                cost = self._cost(token, item)
                bucket = bisect_right(boundaries, cost)
                buffer.append(token, item, [bucket, cost])
                waiting.add(bucket, cost)
                if not warned and self.limit.counted(cost) > self.limit.cost:
                    self._warn(token, cost)
                    warned = True
            ended = len(buffer) < self.size
            if not buffer:
                return
            drawn = state.get("drawn", 0)
            state["drawn"] = drawn + 1
            yield self._batch(lane, waiting, derive(_KIND, self.seed, drawn), ended=ended)

    @cached
    def boundaries(self) -> tuple[float, ...]:
        """The costs at which the next bucket begins: as given, or such that buckets have equal total costs.

        They are estimated once, from the first items of the first lane that has any, so that all lanes and
        ranks use the same.
        """
        if self.given is not None:
            return self.given
        source = self.inputs[0]
        costs: list[float] = []
        for lane in range(source.lanes):
            first = itertools.islice(LaneIterator(source, lane), self.size)
            costs = sorted(self._cost(token, item) for token, item in first)
            if costs:
                break
        else:
            raise NothingPassed(f"boundaries cannot be estimated: nothing comes out of {source!r}")
        total, run = _total(costs), 0.0
        found: list[float] = []
        for cost in costs:
            run += cost
            if run * self.buckets >= total * (len(found) + 1) and len(found) < self.buckets - 1:
                found.append(cost)
        return tuple(sorted(set(found)))

    def _batch(
        self, lane: Lane, waiting: _Waiting, preference: int, *, ended: bool
    ) -> tuple[Token, list[Any]]:
        """Take a batch out of the buffer."""
        buffer = lane.buffer()
        bucket = waiting.chosen(preference, self.limit, only_full=not ended)
        count = self.limit.first_of(waiting.costs[bucket])
        indices = list(
            itertools.islice((at for at, note in enumerate(buffer.notes) if note[0] == bucket), count)
        )
        del waiting.costs[bucket][:count]
        taken = buffer.take(indices)
        return tuple(token for token, _ in taken), [item for _, item in taken]

    def _warn(self, token: Token, cost: float) -> None:
        """Log that an item costs more than a batch may."""
        counted = self.limit.counted(cost)
        LOG.warning(
            "the item of token %r costs %g, and max_cost=%g of %r: it comes as a batch of its own, which "
            "costs more than the others. Leave such items out before, with stream.filter(); later ones are "
            "not logged",
            *(token, counted, self.limit.cost, self),
        )

    def _cost(self, token: Token, item: Any) -> float:
        try:
            return _checked(self.cost(item))
        except Exception as error:
            add_token(error, self, token)
            raise


def _total(costs: Iterable[float]) -> float:
    """Return the sum, added from the first to the last: sum() rounds otherwise from Python 3.12 on."""
    return functools.reduce(operator.add, costs, 0.0)


def _checked(cost: Any) -> float:
    try:
        number = float(cost)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise InvalidArgument(f"a cost must be a finite number of at least 0 (got {cost!r})")
    return number


class _Waiting:
    """The costs of the waiting items by bucket, in the order of the items."""

    def __init__(self, buckets: int, notes: Sequence[Any]) -> None:
        self.costs: list[list[float]] = [[] for _ in range(buckets)]
        for bucket, cost in notes:
            self.add(bucket, cost)

    def add(self, bucket: int, cost: float) -> None:
        self.costs[bucket].append(cost)

    def chosen(self, preference: int, limit: CostLimit, *, only_full: bool) -> int:
        """Return the bucket to take a batch from.

        Args:
            preference: the preferred bucket, modulo the number of buckets.
            limit: the limits of a batch.
            only_full: take the nearest bucket that holds a whole batch, or the fullest if none does;
                otherwise the nearest bucket with any item.
        """
        preferred = preference % len(self.costs)
        filled = (bucket for bucket, costs in enumerate(self.costs) if costs)
        near = sorted(filled, key=lambda bucket: (abs(bucket - preferred), bucket))
        if only_full:
            for bucket in near:
                if limit.is_full(self.costs[bucket]):
                    return bucket
            return max(near, key=lambda bucket: _total(self.costs[bucket]))
        return near[0]


def checked_cost(name: str, value: object) -> float:
    """Return an argument that must be a finite number above 0.

    Raises:
        InvalidArgument: it is not.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise InvalidArgument(f"{name} must be a finite number above 0 (got {value!r})")
    return float(value)


def checked_boundaries(values: object) -> tuple[float, ...]:
    """Return ``boundaries=``, which must be finite numbers in ascending order.

    Raises:
        InvalidArgument: they are not.
    """
    given: list[Any] = list(values) if isinstance(values, Iterable) else [values, None]
    numbers = [value for value in given if isinstance(value, int | float) and abs(value) < math.inf]
    if len(numbers) != len(given) or numbers != sorted(set(numbers)):
        raise InvalidArgument(f"boundaries must be finite numbers that ascend (got {values!r})")
    return tuple(map(float, numbers))
