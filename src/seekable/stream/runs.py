"""Items that stages without memory make many at a time, with the token of each and the state after it.

A stage that keeps no item may make *runs*, lists of items, in the place of single items with their tokens.
The items of a run are delivered later, one by one. So tokens are made when they are asked for, and a state is
computed from the number of items that are *behind*: taken, and not delivered yet. Where memory lies between
two stages, such as a buffer, the upper one takes single items.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seekable.stream.token import Token

    StageValues = Sequence[dict[str, Any]]
    """The values of a stage and of all those below it after some item, in the order of ``walk``."""

__all__ = ["END", "ConsumedCounts", "Run", "RunLength", "Runs", "called"]

END: Final = -1
"""In the place of a number of items that are behind: all were delivered, and the end was seen."""

_MOST: Final = 128
"""The most items of a run. More of them do not stay in the processor's cache until they are delivered."""

_QUICK: Final = 0.001
"""The seconds that a run may take before its first item is delivered."""


class Run(NamedTuple):
    """Some consecutive items of a stage in one lane."""

    items: list[Any]

    tokens: Callable[[], Iterable[Token]]
    """Returns the token of each item: made when they are asked for, because most runs are never asked.

    It keeps no items: these are free when they are delivered, so that the next ones find warm memory."""


class Runs(ABC):
    """Makes the items of one stage in one lane."""

    @abstractmethod
    def take(self, count: int, behind: int) -> Run:
        """Return the next items: at most ``count``, and none only at the end.

        An error of a function is raised where its item would be the first one of a run.

        Args:
            count: the number of items.
            behind: how many items of earlier runs are not delivered yet; states before them are not needed.
        """

    @abstractmethod
    def values(self, behind: int) -> dict[str, Any]:
        """Return the values of the stage after an item that was taken, or after the end: a new dict."""

    @abstractmethod
    def below(self, behind: int) -> Iterable[int | StageValues]:
        """Return how many items of each input are behind then, or the values of the input and all below."""


@final
class RunLength:
    """The number of items that are made together: small at first, and where they take long.

    So the first item comes soon, and no function is called far ahead if each call takes time.
    """

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 1

    def take(self, source: Callable[[int, int], Run], behind: int) -> Run:
        """Return the next run of a source; its time decides how long the one after it is."""
        begun = time.perf_counter()
        run = source(self._count, behind)
        is_quick = time.perf_counter() - begun < _QUICK
        self._count = min(2 * self._count, _MOST) if is_quick else max(1, self._count // 2)
        return run


@final
class ConsumedCounts:
    """Keeps, for each of a stage's last items, the count that had been taken of the input when it was made.

    Example:
        >>> consumed = ConsumedCounts(0)
        >>> consumed.add([3, 4, 9], taken=12)
        >>> [consumed.at(behind) for behind in (3, 2, 1, 0, END)]
        [0, 3, 4, 9, 12]
    """

    __slots__ = ("_ends", "_start", "needed", "taken")

    def __init__(self, taken: int) -> None:
        self.taken = self.needed = taken
        """All that was taken; and how much had been taken at the first item that is kept as a number."""
        self._start: int | StageValues = taken
        self._ends: list[int | StageValues] = []

    def keep(self, behind: int) -> None:
        """Forget all items but the last ones."""
        count = len(self._ends) - behind
        if count > 0:
            self._start = self._ends[count - 1]
            del self._ends[:count]
            if isinstance(self._start, int):
                self.needed = self._start

    def add(self, ends: Iterable[int], *, taken: int) -> None:
        """Add items, each by what had been taken when it was made, and all that was taken."""
        self._ends.extend(ends)
        self.taken = taken

    def at(self, behind: int) -> int | StageValues:
        """Return what had been taken before so many of the last items were made; all of it at the end."""
        if behind == END:
            return self.taken
        count = len(self._ends) - behind
        return self._ends[count - 1] if count else self._start

    def freeze(self, cut: Callable[[int], StageValues]) -> None:
        """Replace the numbers by what the input was then, so that it may forget all that was taken."""
        frozen = [cut(end) if isinstance(end, int) else end for end in (self._start, *self._ends)]
        self._start, self._ends[:] = frozen[0], frozen[1:]
        self.needed = self.taken


def called(
    fn: Callable[..., Any], count: int, *arguments: Iterable[Any]
) -> tuple[list[Any], Exception | None]:
    """Return what a function returns for one item after another, and the error that it raised.

    Args:
        fn: the function of a user. Nothing is called after an error.
        count: the number of items.
        arguments: iterables of its arguments, as many of each as there are items.

    Example:
        >>> called(int, 3, ["1", "2", "x"])[0]
        [1, 2]
    """
    results: list[Any] = []
    try:
        # The results before an error stay in the list.
        results.extend(map(fn, *arguments))
    except Exception as error:  # noqa: BLE001 - a user's function raises anything; the caller raises it in its turn
        return results, error
    if len(results) < count:
        return results, RuntimeError("a function raised StopIteration, which would end the stream")
    return results, None
