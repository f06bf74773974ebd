"""Batches of items of similar cost: durations, or numbers of tokens."""

from __future__ import annotations

import functools
import itertools
import operator
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from seekable._cached import cached
from seekable.errors import BadToken, InvalidArgument, NothingPassed
from seekable.order.keys import derive, kind_key
from seekable.state.functions import describe_function
from seekable.stream.failures import add_token
from seekable.stream.flow import Flow
from seekable.stream.shapes import OneInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token

__all__ = ["Bucket", "Limit"]

_KIND = kind_key("bucket")


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a batch may cost.

    Example:
        >>> Limit(10, padded=True, quadratic=None, items=None).first_of([4, 3, 2, 1])
        2
    """

    cost: float
    padded: bool
    """Whether each item costs as much as the most costly of its batch."""
    quadratic: float | None
    """The cost at which an item counts twice: it counts ``c + c * c / quadratic``."""
    items: int | None

    def counted(self, cost: float) -> float:
        """Return what an item of a cost counts."""
        return cost if self.quadratic is None else cost + cost * cost / self.quadratic

    def first_of(self, costs: Sequence[float]) -> int:
        """Return how many of some items make a batch, at least one: as many as do not exceed the limit."""
        total = most = 0.0
        for count, cost in enumerate(costs):
            each = self.counted(cost)
            most = max(most, each)
            total = most * (count + 1) if self.padded else total + each
            if count and (total > self.cost or (self.items is not None and count >= self.items)):
                return count
        return len(costs)

    def is_full(self, costs: Sequence[float]) -> bool:
        """Tell whether some items are more than a batch, or just one."""
        if self.items is not None and len(costs) >= self.items:
            return True
        counted = [self.counted(cost) for cost in costs]
        total = max(counted, default=0.0) * len(counted) if self.padded else _total(counted)
        return total >= self.cost


@final
@dataclass(frozen=True, eq=False, repr=False)
class Bucket(OneInput):
    """Items wait in buckets by their cost; each batch is of one bucket, in the order in which they came.

    Batch ``k`` of a lane is of the bucket that a hash of (seed, k) prefers, the same one in all lanes, or
    the nearest of those that hold a whole batch. Tokens are tuples of the items' tokens.
    """

    source: Stream
    cost: Callable[[Any], float]
    limit: Limit
    given: tuple[float, ...] | None
    """The costs at which another bucket begins; None to estimate them."""
    buckets: int
    size: int
    seed: int
    version: str | int | None

    kind: ClassVar[str] = "bucket"
    holds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a function that has no name."""
        describe_function(self.cost, self.version)

    def arguments(self) -> dict[str, Any]:
        """The cost function by name, the limit, the buckets, how many items wait, and the seed."""
        limit = self.limit
        return {
            "cost": describe_function(self.cost, self.version),
            "limit": [limit.cost, limit.padded, limit.quadratic, limit.items],
            "boundaries": self.buckets if self.given is None else list(self.given),
            "buffer": self.size,
            "seed": self.seed,
        }

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the method call."""
        name = describe_function(self.cost, self.version)["name"]
        return (
            f"{inputs[0]}.bucket({name}, max_cost={self.limit.cost:g}, buffer={self.size}, seed={self.seed})"
        )

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Keep the buffer full, and take batches out of it."""
        memory, buffer = flow.memory, flow.buffer()
        if "boundaries" not in memory:
            memory["boundaries"] = list(self.boundaries)
        boundaries = memory["boundaries"]
        source = flow.inputs[0]
        waiting = _Waiting(len(boundaries) + 1, buffer.notes)
        ended = False
        while True:
            for token, item in itertools.islice(source, max(0, self.size - len(buffer))):
                cost = self._cost(token, item)
                bucket = bisect_right(boundaries, cost)
                buffer.append(token, item, [bucket, cost])
                waiting.add(bucket, cost)
            ended = len(buffer) < self.size
            if not buffer:
                return
            drawn = memory.get("drawn", 0)
            memory["drawn"] = drawn + 1
            yield self._batch(flow, waiting, derive(_KIND, self.seed, drawn), ended=ended)

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the items of the batch."""
        if not isinstance(token, tuple) or not token:
            message = f"a token of {self!r} is a tuple of tokens (got {token!r})"
            raise BadToken(message)
        return [(0, each) for each in token]

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the batch."""
        return list(items)

    @cached
    def boundaries(self) -> tuple[float, ...]:
        """The costs at which another bucket begins: given, or such that each bucket has as much cost.

        They are estimated once, from the first items of lane 0, so that all lanes and ranks have the same.
        """
        if self.given is not None:
            return self.given
        first = itertools.islice(Flow(self.source, 0), self.size)
        costs = sorted(self._cost(token, item) for token, item in first)
        if not costs:
            message = f"boundaries cannot be estimated: nothing comes out of lane 0 of {self.source!r}"
            raise NothingPassed(message)
        total, run = _total(costs), 0.0
        found: list[float] = []
        for cost in costs:
            run += cost
            if run * self.buckets >= total * (len(found) + 1) and len(found) < self.buckets - 1:
                found.append(cost)
        return tuple(sorted(set(found)))

    def _batch(
        self, flow: Flow, waiting: _Waiting, preference: int, *, ended: bool
    ) -> tuple[Token, list[Any]]:
        """Take a batch out of the buffer."""
        buffer = flow.buffer()
        bucket = waiting.chosen(preference, self.limit, only_full=not ended)
        count = self.limit.first_of(waiting.costs[bucket])
        places = list(
            itertools.islice((at for at, note in enumerate(buffer.notes) if note[0] == bucket), count)
        )
        del waiting.costs[bucket][:count]
        taken = buffer.take(places)
        return tuple(token for token, _ in taken), [item for _, item in taken]

    def _cost(self, token: Token, item: Any) -> float:
        try:
            return _checked(self.cost(item))
        except Exception as error:
            add_token(error, self, token)
            raise


def _total(costs: Iterable[float]) -> float:
    """Add from the first to the last: from Python 3.12 on sum() rounds otherwise, and order hangs on it."""
    return functools.reduce(operator.add, costs, 0.0)


def _checked(cost: Any) -> float:
    try:
        number = float(cost)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        message = f"a cost must be a finite number of at least 0 (got {cost!r})"
        raise InvalidArgument(message)
    return number


class _Waiting:
    """The costs of the items that wait, by bucket, in the order in which they came."""

    def __init__(self, buckets: int, notes: Sequence[Any]) -> None:
        self.costs: list[list[float]] = [[] for _ in range(buckets)]
        for bucket, cost in notes:
            self.add(bucket, cost)

    def add(self, bucket: int, cost: float) -> None:
        self.costs[bucket].append(cost)

    def chosen(self, preference: int, limit: Limit, *, only_full: bool) -> int:
        """Return the bucket nearest to the preferred one that holds a batch; the fullest if none does."""
        preferred = preference % len(self.costs)
        filled = (bucket for bucket, costs in enumerate(self.costs) if costs)
        near = sorted(filled, key=lambda bucket: (abs(bucket - preferred), bucket))
        if only_full:
            for bucket in near:
                if limit.is_full(self.costs[bucket]):
                    return bucket
            return max(near, key=lambda bucket: _total(self.costs[bucket]))
        return near[0]
