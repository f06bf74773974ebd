"""Streams over any iterable that a function makes."""

from __future__ import annotations

import copy
import inspect
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import msgspec

from seekable._arguments import checked_count, checked_flag
from seekable._cached import cached
from seekable.errors import (
    BadToken,
    CorruptState,
    InvalidArgument,
    NotResumable,
    SeekableError,
    StateMismatch,
    WrongType,
)
from seekable.index.location import Location
from seekable.state.functions import describe_function
from seekable.stream.shapes import ForwardOnly
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seekable.stream.stage import Lane
    from seekable.stream.token import Token


__all__ = ["FromIterable", "from_iterable"]

_PAIR: Final = 2
_ENDED: Final = object()


def from_iterable(
    fn: Callable[..., Iterable[Any]],
    *,
    lanes: int = 1,
    replay: bool = False,
    version: str | int | None = None,
) -> Stream:
    """Return the items of the iterable that a function returns, as a stream.

    How it resumes depends on what the function returns. An iterable, or its iterator, with ``state_dict()``
    and ``load_state_dict()`` is asked for its state after each item, and goes on exactly from there. Without
    them ``replay=True`` counts the items, and skips as many: exact if the iterable gives the same each time,
    and slower the later. With neither, no state can be taken.

    Args:
        fn: called whenever the items are to begin, and returns another iterable each time; as ``fn()``, or as
            ``fn(lane, lanes)`` if it needs two arguments. It enters the fingerprint by qualified name, not by
            its code.
        lanes: how many lanes; more than one need a function of ``(lane, lanes)``.
        replay: whether items may be counted and skipped; with it ``stream[token]`` works too, and so do
            stages in which items wait, each time by going through the iterable from its start.
        version: enters the fingerprint; change it when the function returns others.

    Raises:
        InvalidArgument: there are several lanes, and the function does not take them; or it has no name.

    Example:
        >>> def letters():
        ...     yield from "abcd"
        >>> stream = from_iterable(letters, replay=True)
        >>> iterator = iter(stream)
        >>> next(iterator), next(iterator), iterator.token
        ('a', 'b', (0, 1))
        >>> again = iter(stream)
        >>> again.load_state_dict(iterator.state_dict())
        >>> list(again)
        ['c', 'd']
    """
    describe_function(fn, version)
    count, by_lane = checked_count("lanes", lanes, least=1), _takes_lane(fn)
    if count > 1 and not by_lane:
        message = (
            f"{count} lanes need a function that is called as fn(lane, lanes) and returns the items of one "
            f"(got {fn!r}, which is called without arguments)"
        )
        raise InvalidArgument(message)
    return Stream(FromIterable(count, checked_flag("replay", replay), fn, version, by_lane))


def _takes_lane(fn: Callable[..., Any]) -> bool:
    """Tell a function that needs a lane and their number from one that needs nothing."""
    try:
        signature = inspect.signature(fn)
    except ValueError:  # Some that are made of C have none.
        return False
    try:
        signature.bind()
    except TypeError:
        pass
    else:
        return False
    try:
        signature.bind(0, 1)
    except TypeError:
        message = f"fn must be called as fn() or as fn(lane, lanes) (got {fn!r}, which is fn{signature})"
        raise InvalidArgument(message) from None
    return True


@final
@dataclass(frozen=True, eq=False, repr=False)
class FromIterable(ForwardOnly):
    """The items of what a function returns; tokens are (lane, number of the item in it)."""

    fn: Callable[..., Iterable[Any]]
    version: str | int | None
    by_lane: bool

    kind: ClassVar[str] = "iterable"

    @property
    def checkpointable(self) -> bool:
        """With ``replay``, or where the iterable has a state."""
        return self.replay or self.stateful

    @property
    def constant_time(self) -> bool:
        """Where the iterable has a state, and nothing is replayed."""
        return not self.replay and self.stateful

    @property
    def way_out(self) -> str:
        """What to do without a state."""
        return (
            "give its iterator state_dict() and load_state_dict(), or say replay=True, which counts and skips"
        )

    @cached
    def stateful(self) -> bool:
        """Whether the iterable has a state; to know it, one is made."""
        return _Run(self, 0, {}).keeper is not None

    def arguments(self) -> dict[str, Any]:
        """The function by name."""
        return {"fn": describe_function(self.fn, self.version)}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call."""
        given = f", lanes={self.lane_count}" if self.lane_count > 1 else ""
        given += ", replay=True" if self.replay else ""
        return f"from_iterable({describe_function(self.fn, self.version)['name']}{given})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Go on after the items that were given."""
        state, count = lane.state, lane.state.get("count", 0)
        run = _Run(self, lane.number, state)
        if "state" not in state:
            run.skip(count)
        while (item := run.next()) is not _ENDED:
            state["count"] = count = count + 1
            if run.keeper is not None:
                state["state"] = run.state()
            yield (lane.number, count - 1), item

    def read(self, tokens: Sequence[Token]) -> list[Any]:
        """Go through the iterable of each lane once, and pick the items."""
        if not self.replay:
            message = f"{self!r} cannot give an item again: say replay=True, which goes through it once more"
            raise BadToken(message)
        wanted: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, token in enumerate(tokens):
            lane, number = self._parsed(token)
            wanted[lane][number].append(place)
        found: list[Any] = [None] * len(tokens)
        for lane, numbers in wanted.items():
            run = _Run(self, lane, {})
            for number in sorted(numbers):
                item = run.reach(number)
                if item is _ENDED:
                    message = f"lane {lane} of {self!r} ends before its item {number}: there is none"
                    raise BadToken(message)
                first, *others = numbers[number]
                found[first] = item
                for place in others:
                    found[place] = copy.deepcopy(item)
        return found

    def places(self, token: Token) -> list[Any]:
        """Say which item of the function's it is."""
        _, number = self._parsed(token)
        return [Location(f"<{describe_function(self.fn, self.version)['name']}>", number, 0, 0)]

    def _parsed(self, token: Token) -> tuple[int, int]:
        if isinstance(token, tuple) and len(token) == _PAIR and all(isinstance(part, int) for part in token):
            lane, number = token
            if 0 <= lane < self.lanes and number >= 0:
                return lane, number
        message = f"a token of {self!r} is a pair of a lane and a number (got {token!r})"
        raise BadToken(message)


class _Run:
    """One run through what the function returns."""

    def __init__(self, stage: FromIterable, lane: int, memory: Mapping[str, Any]) -> None:
        """Begin it, or go on from the iterable's state, if that is in the memory."""
        self._stage, self._lane, self._given = stage, lane, 0
        try:
            self._begin(memory)
        except SeekableError:
            raise
        except Exception as error:
            error.add_note(f"when lane {lane} of {stage!r} was to begin")
            raise

    def _begin(self, memory: Mapping[str, Any]) -> None:
        stage = self._stage
        iterable = stage.fn(self._lane, stage.lanes) if stage.by_lane else stage.fn()
        try:
            iterator = iter(iterable)
        except TypeError:
            message = f"fn of {stage!r} must return an iterable (got {type(iterable).__name__})"
            raise WrongType(message) from None
        keeper: Any = next((some for some in (iterator, iterable) if _has_state(some)), None)
        self.keeper = keeper
        """What has the state: the iterator, or what it is of."""
        stage.__dict__.setdefault("stateful", self.keeper is not None)
        if "state" in memory:
            if keeper is None:
                message = (
                    f"the state has one of the iterable's own, and what fn of {stage!r} returns has none"
                )
                raise StateMismatch(message)
            keeper.load_state_dict(_copy(memory["state"]))
            if keeper is not iterator:
                iterator = iter(iterable)
        self._iterator = iterator

    def next(self) -> Any:
        """Return the next item, or that there is none."""
        try:
            item = next(self._iterator, _ENDED)
        except Exception as error:
            error.add_note(
                f"in {self._stage!r}, in lane {self._lane}, {self._given} items after it was begun"
            )
            raise
        self._given += 1
        return item

    def reach(self, number: int) -> Any:
        """Return the item of a number that was not given yet."""
        item = None
        while self._given <= number and item is not _ENDED:
            item = self.next()
        return item

    def skip(self, count: int) -> None:
        """Leave out the first items.

        Raises:
            StateMismatch: there are not so many any more.
        """
        if not isinstance(count, int) or count < 0:
            message = f"the 'count' of {self._stage!r} must be an integer of at least 0 (got {count!r})"
            raise CorruptState(message)
        if count and not self._stage.replay:
            message = f"{self._stage!r} can go on after {count} items with replay=True only"
            raise NotResumable(message)
        for done in range(count):
            if self.next() is _ENDED:
                message = (
                    f"lane {self._lane} of {self._stage!r} gave {count} items before the state was taken, "
                    f"and ends after {done} now: it gives other data"
                )
                raise StateMismatch(message)

    def state(self) -> Any:
        """Return the state after the last item.

        Raises:
            WrongType: it would not be the same after a round trip through JSON.
        """
        assert self.keeper is not None
        state = self.keeper.state_dict()
        try:
            kept = _copy(state)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            kept, why = _ENDED, f" ({error})"
        else:
            why = ""
        if kept is _ENDED or kept != state:
            message = (
                f"state_dict() of {type(self.keeper).__name__}, of {self._stage!r}, must return what JSON "
                f"can hold: dicts with strings for keys, lists (no tuples), strings, numbers, None (got "
                f"{state!r:.200}){why}"
            )
            raise WrongType(message)
        return kept


def _has_state(some: Any) -> bool:
    return all(callable(getattr(some, name, None)) for name in ("state_dict", "load_state_dict"))


def _copy(state: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(state))
