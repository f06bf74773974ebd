"""Requests to stores, each sent as often as it takes: their pace, tries, hedges, errors and counts."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, TypeVar, final

from seekable.errors import SeekableError, Unreachable
from seekable.remote.fetching.budget import Measured, at_once_for
from seekable.remote.stores.object_store import Passing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seekable.remote.stores.object_store import Store

__all__ = [
    "FetchCounts",
    "FetchReport",
    "Pace",
    "Patience",
    "Places",
    "Retrying",
    "Sender",
    "StoreRequest",
    "answer_seconds",
    "hedge_after",
    "may_hedge",
]

_LATENCIES = 1024

_MOST_RATE = 100_000.0
_LEAST_RATE = 1.0
_CUT = 0.7
_CUT_SECONDS = 0.1
_DOUBLING_SECONDS = 1.0
_GROWTH = 0.5
_LONGEST_STOP = 60.0
"""The most seconds that a store can stop all requests for, in one answer."""

_LEAST_SECONDS = 30.0
_SLOWEST_LINK = 250e3

T = TypeVar("T")

_RATE, _BURST = 2000.0, 64.0
_LATENCY, _LINK = 0.03, 125e6
_FAST_LINK, _CONNECTION = 600e6, 80e6
_SMOOTHING = 0.05
_random = random.SystemRandom()
"""The source of jitter: it leaves the generators of the user alone, and differs in forked children."""
_LONG_WAIT = 0.25
"""A request that waits longer than this for the pace gives its place to requests to other stores."""

_HEDGED_BYTES: Final = 8 << 20
"""Longer requests are never sent a second time."""

_HEDGES = 0.05
_CALM_SECONDS = 1.0
_LEAST_AGE = 0.05
_UNKNOWN_AGE = 1.0
_SLOW_LINK = 25e6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FetchReport:
    """The requests of this process to object stores since it began."""

    requests: int
    """The number of requests sent, further tries and hedges included."""
    fetched_bytes: int
    """The number of bytes of objects that arrived."""
    hits: int
    """The number of ranges that were read and were in memory or on disk."""
    misses: int
    """The number of ranges that were read and had to be fetched."""
    waits: int
    """The number of times that a reader waited for requests."""
    wait_seconds: float
    """The time that readers waited for requests, in seconds; readers in several threads add up."""
    retries: int
    """The number of requests that were sent again after a failure."""
    hedges: int
    """The number of requests that were sent a second time because the first was slow."""
    refusals: int
    """The number of answers that refused a request because there were too many."""
    p50_seconds: float | None
    """The median latency of the latest 1,024 requests in seconds; None before the first answer."""
    p95_seconds: float | None
    """The latency that 95 % of the latest 1,024 requests did not exceed; None before the first answer."""
    oldest: str | None
    """The oldest request that has no answer yet: object, range and age; None if there is none."""
    waiting_bytes: int
    """The number of bytes that look-aheads still wait for."""

    @property
    def hit_ratio(self) -> float | None:
        """The share of reads that needed no request; None if nothing was read."""
        reads = self.hits + self.misses
        return self.hits / reads if reads else None


@final
@dataclass(slots=True)
class FetchCounts:
    """The running counts of a fetcher. Counts of the loop are changed there alone."""

    requests: int = 0
    fetched_bytes: int = 0
    hits: int = 0
    misses: int = 0
    waits: int = 0
    wait_seconds: float = 0.0
    retries: int = 0
    hedges: int = 0
    refusals: int = 0
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_LATENCIES))

    def report(self, *, oldest: str | None, waiting_bytes: int) -> FetchReport:
        """Return the counts as they are now."""
        counts = {name: getattr(self, name) for name in _COUNTED}
        latencies = sorted(self.latencies.copy())
        return FetchReport(
            **counts,
            p50_seconds=_quantile(latencies, 0.5),
            p95_seconds=_quantile(latencies, 0.95),
            oldest=oldest,
            waiting_bytes=waiting_bytes,
        )


_COUNTED = tuple(each.name for each in fields(FetchCounts) if each.name != "latencies")


def _quantile(ascending: list[float], share: float) -> float | None:
    if not ascending:
        return None
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


@final
@dataclass(slots=True)
class Pace:
    """The rate of requests to one store.

    Until the first refusal the rate doubles each second in which it held requests back. A refusal cuts it,
    at most once in 100 ms, since refusals come in crowds; each answer then lets it grow a little. Where a
    refusal says how long to wait, no request is sent before.

    Example:
        >>> pace = Pace(rate=10.0, burst=1.0)
        >>> pace.reserve(0.0), pace.reserve(0.0), pace.reserve(0.0), pace.reserve(0.3)
        (0.0, 0.1, 0.2, 0.0)
        >>> pace.refused(0.5, retry_after=3.0)
        >>> pace.rate, pace.reserve(1.5)
        (7.0, 2.0)
    """

    rate: float
    """The requests a second."""
    burst: float
    """The requests that may be sent at once after a pause."""
    _tokens: float = field(init=False)
    _filled_at: float | None = field(default=None, init=False)
    _doubled_at: float | None = field(default=None, init=False)
    _held_back: bool = field(default=False, init=False)
    _stopped_until: float = field(default=float("-inf"), init=False)
    _refused_at: float | None = field(default=None, init=False)
    _cut_at: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._tokens = self.burst

    def reserve(self, now: float) -> float:
        """Count one request as sent, and return the seconds after which it may be; 0.0 for now."""
        if self._filled_at is not None:
            self._tokens = min(self.burst, self._tokens + max(0.0, now - self._filled_at) * self.rate)
        self._filled_at = now
        self._tokens -= 1.0
        wait = max(0.0, -self._tokens / self.rate)
        self._held_back = self._held_back or wait > 0.0
        return max(wait, self.stop_left(now))

    def stop_left(self, now: float) -> float:
        """Return the seconds for which no request may be sent, because the store asked for that."""
        return max(0.0, self._stopped_until - now)

    def answered(self, now: float) -> None:
        """Take note of an answer that was not a refusal."""
        if self._refused_at is not None:
            self.rate = min(_MOST_RATE, self.rate + _GROWTH)
        elif self._doubled_at is None:
            self._doubled_at = now
        elif now - self._doubled_at >= _DOUBLING_SECONDS:
            if self._held_back:
                self.rate = min(_MOST_RATE, 2 * self.rate)
            self._doubled_at, self._held_back = now, False

    def refused(self, now: float, *, retry_after: float | None) -> None:
        """Take note of an answer that refused a request because there are too many.

        Args:
            now: the time of the answer.
            retry_after: the seconds to wait that the answer asks for; None if it asks for nothing.
        """
        self._refused_at = now
        if self._cut_at is None or now - self._cut_at >= _CUT_SECONDS:
            self.rate = max(_LEAST_RATE, _CUT * self.rate)
            self._cut_at = now
            self._tokens = min(self._tokens, 0.0)
        if retry_after is not None:
            self._stopped_until = max(self._stopped_until, now + min(retry_after, _LONGEST_STOP))

    def seconds_since_refusal(self, now: float) -> float:
        """Return the seconds since the last refusal; infinite if there was none."""
        return float("inf") if self._refused_at is None else now - self._refused_at


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The bounds of the tries of one request."""

    tries: int = 8
    """The most times that the request is sent."""
    total_seconds: float = 300.0
    """No try begins later than this after the first one."""
    first_wait: float = 0.1
    """The most seconds before the second try; the most doubles with each further one."""
    longest_wait: float = 15.0
    """The most seconds before any try, but for what the store asks for itself."""


@final
@dataclass(slots=True)
class Retrying:
    """The tries of one request.

    Example:
        >>> retrying = Retrying(Patience(tries=3), began=0.0)
        >>> retrying.wait_after_failure(1.0, share=1.0, retry_after=None)
        0.1
        >>> retrying.wait_after_failure(2.0, share=1.0, retry_after=5.0)
        5.0
        >>> retrying.wait_after_failure(8.0, share=1.0, retry_after=None) is None
        True
    """

    patience: Patience
    began: float
    """The time of the first try, in seconds of any clock."""
    tries: int = field(default=0, init=False)
    """The number of tries that failed."""

    def wait_after_failure(self, now: float, *, share: float, retry_after: float | None) -> float | None:
        """Return the seconds to wait before the next try; None if the request has failed for good.

        Args:
            now: the time of the failure.
            share: a random number from 0 to 1; the wait is this share of the most (full jitter).
            retry_after: the least seconds that the store asks to wait; None if it asks for nothing.
        """
        self.tries += 1
        most = self.patience
        if self.tries >= most.tries:
            return None
        wait = share * min(most.longest_wait, most.first_wait * 2 ** min(self.tries - 1, 62))
        wait = max(wait, retry_after or 0.0)
        return wait if now + wait - self.began <= most.total_seconds else None


def answer_seconds(size: int, *, expected: float | None) -> float:
    """Return how long one try may take, in seconds.

    Args:
        size: the bytes that are sent or received.
        expected: the median time of requests of about this size; None if it is not known.

    Example:
        >>> answer_seconds(4096, expected=0.03), answer_seconds(64 << 20, expected=None)
        (30.0, 268.435456)
    """
    return max(_LEAST_SECONDS, 4 * (expected or 0.0), size / _SLOWEST_LINK)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRequest:
    """One request to a store, with what its sender needs."""

    store: Store
    shown: Callable[[], str]
    """Returns the object and the range for messages."""
    size: int
    """The bytes that are sent or received; 0 if they are few."""
    may_hedge: bool
    """True if it may be sent a second time when it is late."""
    patience: Patience
    """The bounds of its tries."""
    demanded: Callable[[], bool]
    """Returns True if somebody waits for the answer."""


@final
@dataclass(slots=True)
class _Manner:
    """The pace and the measured figures of requests to one store."""

    pace: Pace
    measured: Measured = field(default_factory=lambda: Measured(latency=_LATENCY, link=_LINK))


@final
class Sender:
    """Sends requests from one event loop, and remembers which have no answer yet."""

    def __init__(self, places: Places, counts: FetchCounts, *, processes: int) -> None:
        """Begin without requests; nothing is sent yet.

        Args:
            places: the requests at once.
            counts: counts requests.
            processes: the number of processes that share what a store permits.
        """
        self._places = places
        self._counts = counts
        self._rate = max(1.0, _RATE / processes)
        self._manners: dict[str, _Manner] = {}
        self._last_store: Store | None = None
        self._last = _Manner(Pace(self._rate, _BURST))
        self._mean_bytes = 0.0
        self._open: dict[int, tuple[StoreRequest, float]] = {}
        self._number = 0

    async def send(self, request: StoreRequest, once: Callable[[], Awaitable[T]]) -> T:
        """Send a request until it is answered, and return the answer.

        Args:
            request: describes it.
            once: sends it once.

        Raises:
            Unreachable: it failed as often as permitted; the message has the last answer.
            SeekableError: the error of the store. It ends with what the store lacks.
        """
        try:
            return await self._repeated(request, once)
        except SeekableError as error:
            lacks = getattr(request.store, "lacks", "")
            if not lacks:
                raise
            raise type(error)(f"{error}; {lacks}") from error.__cause__

    async def _repeated(self, request: StoreRequest, once: Callable[[], Awaitable[T]]) -> T:
        manner = self._manner(request.store)
        retrying = Retrying(request.patience, time.monotonic())
        while True:
            try:
                answer = await self._in_turn(request, manner, once)
            except Passing as error:
                failure = error
            else:
                manner.pace.answered(time.monotonic())
                return answer
            now = time.monotonic()
            if failure.refused:
                self._counts.refusals += 1
                manner.pace.refused(now, retry_after=failure.retry_after)
            share = _random.random()
            wait = retrying.wait_after_failure(now, share=share, retry_after=failure.retry_after)
            if wait is None:
                raise _given_up(request.shown(), retrying, failure) from failure
            self._counts.retries += 1
            await asyncio.sleep(wait)

    @property
    def measured(self) -> Measured:
        """The figures of the store that was read last; assumed ones before the first request."""
        return self._last.measured

    def oldest(self) -> str | None:
        """Return the request that has waited longest for its answer, and since when; None if none waits."""
        request, began = min(self._open.copy().values(), key=lambda found: found[1], default=(None, 0.0))
        return f"{request.shown()}, sent {time.monotonic() - began:.1f} s ago" if request else None

    def _manner(self, store: Store) -> _Manner:
        if store is not self._last_store:
            name = store.shown("")
            found = self._manners.get(name)
            if found is None:
                found = self._manners[name] = _Manner(Pace(self._rate, _BURST))
            self._last, self._last_store = found, store
        return self._last

    async def _in_turn(self, request: StoreRequest, manner: _Manner, once: Callable[[], Awaitable[T]]) -> T:
        """Send a request when there is a place and the pace permits it."""
        await self._places.take(demanded=request.demanded())
        has_place = True
        try:
            wait = manner.pace.reserve(time.monotonic())
            while wait > 0.0:
                if wait > _LONG_WAIT:
                    self._places.give_back()
                    has_place = False
                await asyncio.sleep(wait)
                if not has_place:
                    await self._places.take(demanded=request.demanded())
                    has_place = True
                wait = manner.pace.stop_left(time.monotonic())
            return await self._hedged(request, manner, once)
        finally:
            if has_place:
                self._places.give_back()

    async def _hedged(self, request: StoreRequest, manner: _Manner, once: Callable[[], Awaitable[T]]) -> T:
        """Send a request once, and a second time if it is late; the first answer wins."""
        size = request.size
        expected, p95 = manner.measured.quantiles(size) or (None, None)
        most = answer_seconds(size, expected=expected)
        if not request.may_hedge:
            return await _within(self._once(request, manner, once), most)
        late = hedge_after(size, expected=expected, p95=p95)
        until = time.monotonic() + most
        tasks = {asyncio.ensure_future(self._once(request, manner, once))}
        extra = 0
        try:
            while True:
                left = max(0.0, until - time.monotonic())
                done, _ = await asyncio.wait(
                    tasks, timeout=min(late, left), return_when=asyncio.FIRST_COMPLETED
                )
                tasks -= done
                good = [task for task in done if task.exception() is None]
                if good or (done and not tasks):
                    return (good or [*done])[0].result()
                if left <= late and not done:
                    raise Passing(f"no answer in {most:.0f} s")
                if not done and not extra and self._may_hedge(size, manner):
                    await self._places.take(demanded=True)
                    extra = 1
                    self._counts.hedges += 1
                    tasks.add(asyncio.ensure_future(self._once(request, manner, once)))
        finally:
            for task in tasks:
                task.cancel()
            if extra:
                self._places.give_back()

    def _may_hedge(self, size: int, manner: _Manner) -> bool:
        return may_hedge(
            size,
            hedges=self._counts.hedges,
            requests=self._counts.requests,
            since_refusal=manner.pace.seconds_since_refusal(time.monotonic()),
            is_place_free=self._places.is_free,
        )

    async def _once(self, request: StoreRequest, manner: _Manner, once: Callable[[], Awaitable[T]]) -> T:
        self._number += 1
        number, began = self._number, time.monotonic()
        self._open[number] = request, began
        self._counts.requests += 1
        try:
            answer = await once()
        finally:
            del self._open[number]
        now = time.monotonic()
        self._counts.latencies.append(now - began)
        if request.may_hedge:
            self._counts.fetched_bytes += request.size
            manner.measured.answered(now, size=request.size, seconds=now - began)
            self._adapt(manner.measured, request.size)
        return answer

    def _adapt(self, measured: Measured, size: int) -> None:
        """Permit as many requests at once as a fast link needs for requests of the latest sizes."""
        self._mean_bytes += _SMOOTHING * (size - self._mean_bytes)
        at_once = at_once_for(
            rate=max(measured.link, _FAST_LINK),
            latency=measured.latency,
            connection=_CONNECTION,
            request_bytes=round(self._mean_bytes),
        )
        if at_once != self._places.at_once:
            self._places.set_at_once(at_once)


async def _within(work: Awaitable[T], seconds: float) -> T:
    """Return the result of some work that may take only so long.

    Raises:
        Passing: it took longer.
    """
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise Passing(f"no answer in {seconds:.0f} s") from None


def _given_up(shown: str, retrying: Retrying, failure: Passing) -> Unreachable:
    seconds = time.monotonic() - retrying.began
    return Unreachable(
        f"{shown}: {retrying.tries} tries in {seconds:.0f} s failed; the last one: {failure}; "
        f"check the network and the store, and run again: nothing is lost"
    )


def hedge_after(size: int, *, expected: float | None, p95: float | None) -> float:
    """Return the age in seconds from which a request is late.

    Args:
        size: the bytes of the request.
        expected: the median latency of requests of about this size; None if it is not known yet.
        p95: the latency that 95 % of them do not exceed; None if it is not known yet.

    Example:
        >>> hedge_after(4096, expected=0.03, p95=0.2)
        0.2
        >>> hedge_after(25_000_000, expected=None, p95=None)
        2.0
    """
    if expected is None or p95 is None:
        return _UNKNOWN_AGE + size / _SLOW_LINK
    return max(_LEAST_AGE, 3 * expected, p95)


def may_hedge(size: int, *, hedges: int, requests: int, since_refusal: float, is_place_free: bool) -> bool:
    """Return True if a late request may be sent a second time.

    Args:
        size: the bytes of the request.
        hedges: the number of requests that were sent a second time before.
        requests: the number of requests before; at most 5 % of them are sent a second time.
        since_refusal: the seconds since the store refused a request because there were too many.
        is_place_free: True if no other request waits to be sent.

    Example:
        >>> may_hedge(4096, hedges=4, requests=100, since_refusal=9.0, is_place_free=True)
        True
        >>> may_hedge(4096, hedges=5, requests=100, since_refusal=9.0, is_place_free=True)
        False
    """
    if size > _HEDGED_BYTES or not is_place_free or since_refusal < _CALM_SECONDS:
        return False
    return hedges < max(1.0, _HEDGES * requests)


@final
class Places:
    """A semaphore of one event loop with two queues. The most at once may change at any time."""

    def __init__(self, *, at_once: int) -> None:
        """Start with all places free.

        Args:
            at_once: the most requests at once.
        """
        self._at_once = at_once
        self._open = 0
        self._queues: tuple[deque[asyncio.Future[None]], deque[asyncio.Future[None]]] = deque(), deque()

    @property
    def at_once(self) -> int:
        """The most requests at once."""
        return self._at_once

    @property
    def is_free(self) -> bool:
        """True if a place is free and nobody waits for one."""
        return self._open < self._at_once and not any(self._queues)

    def set_at_once(self, at_once: int) -> None:
        """Change the most requests at once; requests that are under way go on."""
        self._at_once = at_once
        self._fill()

    async def take(self, *, demanded: bool) -> None:
        """Wait for a place and take it.

        Args:
            demanded: True if somebody waits for the request; it then comes before all others.
        """
        if self.is_free:
            self._open += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues[0 if demanded else 1].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Free a place, which goes to the first request that waits."""
        self._open -= 1
        self._fill()

    def _fill(self) -> None:
        for queue in self._queues:
            while queue and self._open < self._at_once:
                turn = queue.popleft()
                if not turn.done():
                    self._open += 1
                    turn.set_result(None)
