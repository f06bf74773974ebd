"""The law of exact resume, as an assertion; and equality for records with arrays, NaN and all else."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np

from seekable._arguments import AT_ONCE, checked_count, checked_flag, checked_function, row_array
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, WrongType
from seekable.loader.loader import Loader
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["assert_resumes_exactly", "same"]


_PLAIN = frozenset({str, int, bool, bytes, type(None)})
"""Types without parts, whose equal values are the same."""


def same(one: Any, other: Any) -> bool:  # noqa: PLR0911 - one case a type
    """Return True if two values have the same type and are equal; arrays and NaN are compared by value.

    Example:
        >>> same({"x": np.array([1.0, np.nan])}, {"x": np.array([1.0, np.nan])}), same(1, True)
        (True, False)
    """
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in _PLAIN:
        return bool(one == other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and _all_same([*one.values()], [other[key] for key in one])
    if isinstance(one, list | tuple):
        return len(one) == len(other) and _all_same([*one], [*other])
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype == object:
            return same(one.tolist(), other.tolist())
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def _all_same(these: list[Any], others: list[Any]) -> bool:
    """Compare as many values of a kind, those without parts all at once."""
    kinds = [*map(type, these)]
    if _PLAIN.issuperset(kinds):
        return kinds == [*map(type, others)] and these == others
    return all(map(same, these, others))


_MOST_ITEMS = 1000
"""The most batches that are compared, so that endless pipelines can be tested."""


def assert_resumes_exactly(
    factory: Callable[[], Loader | Dataset | Stream],
    *,
    runs: int = 3,
    cuts: Sequence[int] | None = None,
    new_process: bool = True,
) -> None:
    """Assert that a pipeline resumes exactly, wherever it is cut.

    For each cut, the batches before the cut, followed by the batches of a new pipeline that was restored from
    the state at the cut, must equal an uninterrupted run, item for item. The state takes a round trip through
    JSON. It must not change by being restored. Half way to the end the pipeline is restored a second time.

    Args:
        factory: returns a new pipeline: a ``Loader``; a ``Dataset``, which is compared record by record; or a
            ``Stream``, which is compared item by item, with tokens, in one run.
        runs: the number of runs (for most loaders: epochs) that are compared; of an endless pipeline 1,000
            batches are compared.
        cuts: the numbers of batches after which to cut; by default all, from 0 to the number of batches.
        new_process: restore in a new Python process too, one for all cuts. The factory is pickled by value
            for it.

    Raises:
        AssertionError: an item differs; the message names the cut and the item.
        WrongType: an argument is of another type, or the factory returns something else.
        InvalidArgument: a cut is beyond the last batch.

    Example:
        >>> import seekable as sk
        >>> from seekable.testing import assert_resumes_exactly
        >>> ds = sk.from_sequence(range(10)).shuffle(seed=1)
        >>> assert_resumes_exactly(lambda: sk.Loader(ds, batch_size=4), new_process=False)
    """
    runs = checked_count("runs", runs, least=1, below=AT_ONCE)
    checked_flag("new_process", new_process)
    items, states = _uninterrupted(checked_function("factory", factory), runs)
    chosen = list(range(len(items) + 1)) if cuts is None else _checked_cuts(cuts)
    for cut in chosen:
        if not 0 <= cut < len(states):
            message = f"cuts must be from 0 to {len(items)}, the number of batches (got {cut})"
            raise InvalidArgument(message)
    saved = [(cut, json.loads(json.dumps(states[cut]))) for cut in chosen]
    compare_cuts(factory, items, saved, runs=runs)
    if new_process:
        _in_new_process(factory, items, saved, runs)


def _checked_cuts(cuts: object) -> list[int]:
    numbers = row_array(cuts)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not numbers.size:
        message = f"cuts must be a list of numbers of batches, at least one (got {cuts!r})"
        raise WrongType(message)
    found: list[int] = numbers.tolist()
    return found


def compare_cuts(
    factory: Callable[[], Loader | Dataset | Stream],
    items: list[Any],
    saved: list[tuple[int, dict[str, Any]]],
    *,
    runs: int,
) -> None:
    """Restore each state, and once more half way to the end, and compare the items that follow."""
    for cut, state in saved:
        middle = (cut + len(items)) // 2
        loader = _made(factory)
        loader.load_state_dict(state)
        if loader.state_dict() != state:
            message = (
                f"cut at {cut}: the state changed by being restored: {state} became {loader.state_dict()}"
            )
            raise AssertionError(message)
        _compare(_next_items(loader, middle - cut, runs), items[cut:middle], start=cut, where=f"cut at {cut}")
        second = json.loads(json.dumps(loader.state_dict()))
        loader.close()
        again = _made(factory)
        again.load_state_dict(second)
        rest = _next_items(again, len(items) - middle, runs)
        again.close()
        _compare(rest, items[middle:], start=middle, where=f"cut at {cut} and again at {middle}")


def _uninterrupted(
    factory: Callable[[], Loader | Dataset | Stream], runs: int
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the items of ``runs`` runs, and the states before the first item and after each item."""
    loader = _made(factory)
    items: list[Any] = []
    states = [loader.state_dict()]
    for _ in range(runs):
        for item in loader:
            items.append(item)
            states.append(loader.state_dict())
            if len(items) == _MOST_ITEMS:
                loader.close()
                return items, states
    return items, states


def _next_items(loader: Loader | _TokenItems, count: int, runs: int) -> list[Any]:
    """Return the next ``count`` items, also across the ends of runs."""
    items: list[Any] = []
    for _ in range(runs + 1):
        if len(items) == count:
            break
        for item in loader:
            items.append(item)
            if len(items) == count:
                break
    return items


class _TokenItems:
    """The items of a stream with their tokens, through the methods of a loader that this module uses."""

    def __init__(self, stream: Stream) -> None:
        self._iterator = iter(stream)
        self.state_dict = self._iterator.state_dict
        self.load_state_dict = self._iterator.load_state_dict

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for item in self._iterator:
            yield self._iterator.token, item

    def close(self) -> None:
        """Do nothing: there are no workers."""


def _made(factory: Callable[[], Loader | Dataset | Stream]) -> Loader | _TokenItems:
    made = factory()
    if isinstance(made, Stream):
        return _TokenItems(made)
    if isinstance(made, Dataset):
        return Loader(made, batch_size=None, prefetch=0)
    if not isinstance(made, Loader):
        message = f"the factory must make a Loader, a Dataset or a Stream (got {type(made).__name__})"
        raise WrongType(message)
    return made


def _compare(found: list[Any], wanted: list[Any], *, start: int, where: str) -> None:
    for i, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if not same(one, other):
            message = f"{where}: item {start + i} is {one!r}, and {other!r} in the uninterrupted run"
            raise AssertionError(message)
    if len(found) != len(wanted):
        message = f"{where}: {len(found)} items follow, and {len(wanted)} in the uninterrupted run"
        raise AssertionError(message)


_CHILD = """
import pickle, sys
sys.path[:], script = pickle.load(sys.stdin.buffer)
if script is not None:
    __file__ = script  # functions of the script have its name in fingerprints
factory, items, saved, runs = pickle.load(sys.stdin.buffer)
from seekable.testing.resume import compare_cuts
compare_cuts(factory, items, saved, runs=runs)
"""


def _in_new_process(
    factory: Callable[[], Loader | Dataset | Stream],
    items: list[Any],
    saved: list[tuple[int, dict[str, Any]]],
    runs: int,
) -> None:
    script = getattr(sys.modules["__main__"], "__file__", None)
    child = subprocess.run(  # noqa: S603 - our own interpreter and our own code
        [sys.executable, "-c", _CHILD],
        # sys.path comes first: unpickling the factory imports modules.
        input=cloudpickle.dumps((sys.path, script)) + cloudpickle.dumps((factory, items, saved, runs)),
        capture_output=True,
        check=False,
    )
    if child.returncode != 0:
        message = f"in a new process: {child.stderr.decode(errors='replace')}"
        raise AssertionError(message)
