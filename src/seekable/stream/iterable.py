"""Streams over the items of an iterable that a function returns."""

from __future__ import annotations

import copy
import inspect
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import msgspec

from seekable._arguments import AT_ONCE, checked_count, checked_flag
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

    What the function returns decides how the stream resumes. If the iterable or its iterator has
    ``state_dict()`` and ``load_state_dict()``, the stream saves that state after each item and resumes
    exactly from it. Otherwise ``replay=True`` counts the items and skips as many: exact if the iterable gives
    the same items each time, and slower the later the state was taken. With neither, no state can be taken.

    Args:
        fn: called at each start, and returns a new iterable each time; called as ``fn()``, or as
            ``fn(lane, lanes)`` if it needs two arguments. Its qualified name enters the fingerprint, its code
            does not.
        lanes: the number of lanes; several lanes need a function of ``(lane, lanes)``.
        replay: allow a resume to count and skip items. Then ``stream[token]`` works too, and so do stages in
            which items wait; each time the iterable is read from its start.
        version: enters the fingerprint; change it when the function returns other items.

    Raises:
        InvalidArgument: there are several lanes and the function does not take ``(lane, lanes)``; or the
            function has no name.

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
    count, by_lane = checked_count("lanes", lanes, least=1, below=AT_ONCE), _takes_lane(fn)
    if count > 1 and not by_lane:
        raise InvalidArgument(
            f"{count} lanes need a function that is called as fn(lane, lanes) and returns the items of one "
            f"(got {fn!r}, which is called without arguments)"
        )
    return Stream(FromIterable(count, checked_flag("replay", replay), fn, version, by_lane))


def _takes_lane(fn: Callable[..., Any]) -> bool:
    """Return True for a function of ``(lane, lanes)``, False for a function without required arguments."""
    try:
        signature = inspect.signature(fn)
    except ValueError:  # Some functions that are written in C have no signature.
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
    """The items of what a function returns. A token is (lane, number of the item in the lane)."""

    fn: Callable[..., Iterable[Any]]
    version: str | int | None
    by_lane: bool

    kind: ClassVar[str] = "iterable"

    @property
    def checkpointable(self) -> bool:
        """True with ``replay``, or if the iterable has a state."""
        return self.replay or self.stateful

    @property
    def constant_time(self) -> bool:
        """True if the iterable has a state, and ``replay`` is not set."""
        return not self.replay and self.stateful

    @property
    def way_out(self) -> str:
        """Advice for an iterable without a state."""
        return (
            "give its iterator state_dict() and load_state_dict(), or say replay=True, which counts and skips"
        )

    @cached
    def stateful(self) -> bool:
        """True if the iterable has a state; the function is called once to find out."""
        return _Pass(self, 0, {}).keeper is not None

    def arguments(self) -> dict[str, Any]:
        """Return the function's name and version."""
        return {"fn": describe_function(self.fn, self.version)}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call of ``sk.from_iterable``."""
        given = f", lanes={self.lane_count}" if self.lane_count > 1 else ""
        given += ", replay=True" if self.replay else ""
        return f"from_iterable({describe_function(self.fn, self.version)['name']}{given})"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        """Yield the items after those that the state counts."""
        state, count = lane.state, lane.state.get("count", 0)
        items = _Pass(self, lane.number, state)
        if "state" not in state:
            items.skip(count)
        while (item := items.next()) is not _ENDED:
            state["count"] = count = count + 1
            if items.keeper is not None:
                state["state"] = items.state()
            yield (lane.number, count - 1), item

    def read(self, tokens: Sequence[Token]) -> list[Any]:
        """Return the items of some tokens; the iterable of each lane is read once.

        Raises:
            BadToken: ``replay`` is not set, or a lane has no such item.
        """
        if not self.replay:
            message = f"{self!r} cannot give an item again: say replay=True, which goes through it once more"
            raise BadToken(message)
        wanted: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, token in enumerate(tokens):
            lane, number = self._parsed(token)
            wanted[lane][number].append(place)
        found: list[Any] = [None] * len(tokens)
        for lane, numbers in wanted.items():
            items = _Pass(self, lane, {})
            for number in sorted(numbers):
                item = items.reach(number)
                if item is _ENDED:
                    raise BadToken(f"lane {lane} of {self!r} ends before its item {number}: there is none")
                first, *others = numbers[number]
                found[first] = item
                for place in others:
                    found[place] = copy.deepcopy(item)
        return found

    def places(self, token: Token) -> list[Any]:
        """Return a ``Location`` that has the function's name as path, and the item's number as row."""
        _, number = self._parsed(token)
        return [Location(f"<{describe_function(self.fn, self.version)['name']}>", number, 0, 0)]

    def _parsed(self, token: Token) -> tuple[int, int]:
        if isinstance(token, tuple) and len(token) == _PAIR and all(isinstance(part, int) for part in token):
            lane, number = token
            if 0 <= lane < self.lanes and number >= 0:
                return lane, number
        raise BadToken(f"a token of {self!r} is a pair of a lane and a number (got {token!r})")


class _Pass:
    """One pass over the iterable of a lane."""

    def __init__(self, stage: FromIterable, lane: int, state: Mapping[str, Any]) -> None:
        """Call the function, and load the iterable's own state if ``state`` has one."""
        self._stage, self._lane, self._given = stage, lane, 0
        try:
            self._begin(state)
        except SeekableError:
            raise
        except Exception as error:
            error.add_note(f"when lane {lane} of {stage!r} was to begin")
            raise

    def _begin(self, state: Mapping[str, Any]) -> None:
        stage = self._stage
        iterable = stage.fn(self._lane, stage.lanes) if stage.by_lane else stage.fn()
        try:
            iterator = iter(iterable)
        except TypeError:
            message = f"fn of {stage!r} must return an iterable (got {type(iterable).__name__})"
            raise WrongType(message) from None
        keeper: Any = next((some for some in (iterator, iterable) if _has_state(some)), None)
        self.keeper = keeper
        """The object that has a state: the iterator or the iterable; None if neither has one."""
        stage.__dict__.setdefault("stateful", self.keeper is not None)
        if "state" in state:
            if keeper is None:
                raise StateMismatch(
                    f"the state has one of the iterable's own, and what fn of {stage!r} returns has none"
                )
            keeper.load_state_dict(_copy(state["state"]))
            if keeper is not iterator:
                iterator = iter(iterable)
        self._iterator = iterator

    def next(self) -> Any:
        """Return the next item, or ``_ENDED``."""
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
        """Return the item of a number at or after the next one, or ``_ENDED``."""
        item = None
        while self._given <= number and item is not _ENDED:
            item = self.next()
        return item

    def skip(self, count: int) -> None:
        """Draw the first items and drop them.

        Raises:
            CorruptState: ``count`` is not a count.
            NotResumable: ``replay`` is not set.
            StateMismatch: the iterable has fewer items now.
        """
        if not isinstance(count, int) or count < 0:
            message = f"the 'count' of {self._stage!r} must be an integer of at least 0 (got {count!r})"
            raise CorruptState(message)
        if count and not self._stage.replay:
            raise NotResumable(f"{self._stage!r} can go on after {count} items with replay=True only")
        for done in range(count):
            if self.next() is _ENDED:
                raise StateMismatch(
                    f"lane {self._lane} of {self._stage!r} gave {count} items before the state was taken, "
                    f"and ends after {done} now: it gives other data"
                )

    def state(self) -> Any:
        """Return the iterable's own state after the last item.

        Raises:
            WrongType: the state would change in a round trip through JSON.
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
            raise WrongType(
                f"state_dict() of {type(self.keeper).__name__}, of {self._stage!r}, must return what JSON "
                f"can hold: dicts with strings for keys, lists (no tuples), strings, numbers, None (got "
                f"{state!r:.200}){why}"
            )
        return kept


def _has_state(some: Any) -> bool:
    return all(callable(getattr(some, name, None)) for name in ("state_dict", "load_state_dict"))


def _copy(state: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(state))
