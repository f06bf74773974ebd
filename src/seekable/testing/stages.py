"""The tests that every stage of a stream must pass, as a class for pytest."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, ClassVar

import cloudpickle

from seekable.dataset.combine import concat
from seekable.dataset.combine import zip as zip_streams
from seekable.errors import NotResumable, SeekableError, StateMismatch, WrongType
from seekable.stream.lane import LaneIterator, apply_deltas
from seekable.testing.resume import assert_resumes_exactly, same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.stream.stream import Stream

__all__ = ["StageTests"]

_CUTS_IN_NEW_PROCESS = 50


class StageTests:
    """Tests a stage of a stream; pytest runs the methods of a class that is derived from this one.

    Override ``stream``, or ``streams`` for several. A stream of some tens of items is enough: the time of the
    tests grows with the square of the number of items.

    Example:
        >>> import seekable as sk
        >>> class TestEvery(StageTests):
        ...     def stream(self):
        ...         return sk.from_sequence(range(10)).stream(lanes=2, epochs=1).batch(3)
        >>> TestEvery().test_tokens_rebuild_their_items()
    """

    most: ClassVar[int] = 100
    """The most items of a stream that are compared, so that streams may be endless."""

    def stream(self) -> Stream:
        """Return a stream whose last stage is the one to test; each call returns an equal stream."""
        message = f"{type(self).__name__} must have a method stream(), or streams()"
        raise WrongType(message)

    def streams(self) -> list[Stream]:
        """Return several streams: other arguments, lanes and sources, without items, without end."""
        return [self.stream()]

    def test_it_resumes_exactly_at_every_cut(self) -> None:
        """States go through JSON, are restored twice, and in another process."""
        for stream in self._resumable():
            count = len(_pairs(iter(stream), self.most))
            cuts = range(count + 1)
            some = [*cuts[:: count // _CUTS_IN_NEW_PROCESS + 1], count]
            assert_resumes_exactly(_Factory(stream, self.most), cuts=cuts, new_process=False)
            assert_resumes_exactly(_Factory(stream, self.most), cuts=some)

    def test_states_depend_on_nothing_but_what_was_delivered(self) -> None:
        """A resumed run has the same states as an uninterrupted one, and restoring changes no state."""
        for stream in self._resumable():
            states = _states(stream, self.most)
            for at, state in enumerate(states):
                again = iter(stream)
                again.load_state_dict(state)
                if again.state_dict(rows=False) != state:
                    message = f"cut at {at}: restoring changed the state"
                    raise AssertionError(message)
                for later in states[at + 1 : at + 4]:
                    next(again)
                    found = again.state_dict(rows=False)
                    if found != later:
                        message = f"cut at {at}: a later state is {found}, and {later} in one run"
                        raise AssertionError(message)

    def test_changes_add_up_to_the_state(self) -> None:
        """The deltas that workers send with each batch sum to the state of their lanes."""
        for stream in self._resumable():
            for lane in range(stream.lanes):
                root = LaneIterator(stream.stage, lane)
                kept = root.states()
                for number, _ in enumerate(itertools.islice(root, self.most)):
                    if number % 3:
                        apply_deltas(kept, root.deltas())
                        found, wanted = ([each.document() for each in some] for some in (kept, root.states()))
                        if found != wanted:
                            message = f"lane {lane}: changes add up to {found}, the state is {wanted}"
                            raise AssertionError(message)

    def test_what_cannot_be_resumed_says_so_when_its_state_is_taken(self) -> None:
        """``state_dict`` raises where ``checkpointable`` is false."""
        for stream in self.streams():
            if not stream.checkpointable:
                try:
                    iter(stream).state_dict()
                except NotResumable:
                    continue
                message = f"{stream!r} is not checkpointable, and gave a state"
                raise AssertionError(message)

    def test_tokens_rebuild_their_items(self) -> None:
        """``stream[token]`` equals the item, also after a JSON round trip; ``locate`` accepts the token."""
        for stream in self.streams():
            for token, item in _pairs(iter(stream), self.most) if stream.indexed else ():
                for given in (token, json.loads(json.dumps(token))):
                    found = stream[given]
                    if not same(found, item):
                        message = f"stream[{given!r}] is {found!r}, and was {item!r}"
                        raise AssertionError(message)
                places = stream.locate(token)
                if not isinstance(places, list):
                    message = f"locate({token!r}) is not a list: {places!r}"
                    raise AssertionError(message)  # noqa: TRY004 - a failed law, no wrong argument

    def test_iterators_do_not_disturb_each_other(self) -> None:
        """Two iterators over one stream are read in turn, one ahead of the other."""
        for stream in self.streams():
            wanted = _pairs(iter(stream), self.most)
            first, second = iter(stream), iter(stream)
            ahead = _pairs(first, len(wanted) // 3)
            behind: list[Any] = []
            while len(ahead) < len(wanted):
                ahead += _pairs(first, 1)
                behind += _pairs(second, 1)
            behind += _pairs(second, len(wanted) - len(behind))
            if not same(ahead, wanted):
                message = f"of two iterators the first gave {ahead}, and one alone {wanted}"
                raise AssertionError(message)
            if not same(behind, wanted):
                message = f"of two iterators the second gave {behind}, and one alone {wanted}"
                raise AssertionError(message)

    def test_a_stream_may_be_in_two_branches(self) -> None:
        """A stream that is zipped or concatenated with itself gives each item twice, also after a resume."""
        for stream in self.streams():
            wanted = [item for _, item in _pairs(iter(stream), self.most)]
            both = zip_streams([stream, stream])
            found = [item for _, item in _pairs(iter(both), self.most)]
            if not same(found, [(item, item) for item in wanted]):
                message = f"zipped with itself it gave {found}"
                raise AssertionError(message)
            if stream.checkpointable:
                assert_resumes_exactly(
                    _Factory(both, self.most), cuts=[0, len(found) // 2], new_process=False
                )
            if stream.lanes == 1 and len(wanted) < self.most:
                twice = [item for _, item in _pairs(iter(concat([stream, stream])), 2 * self.most)]
                if not same(twice, 2 * wanted):
                    message = f"one after the other twice it gave {twice}"
                    raise AssertionError(message)

    def test_a_state_of_another_stream_is_refused(self) -> None:
        """A state of a stream with another fingerprint raises ``StateMismatch``."""
        for stream in self._resumable():
            state = iter(stream.take(1)).state_dict()
            _refused(stream, state, StateMismatch)

    def test_a_state_that_was_changed_is_refused(self) -> None:
        """A state that was changed anywhere raises an error of seekable."""
        for stream in self._resumable():
            states = _states(stream, self.most)
            for state in (states[0], states[len(states) // 2], states[-1]):
                for changed in _changed(state):
                    if changed != {}:  # which stands for no state
                        _refused(stream, changed, SeekableError)

    def test_a_token_that_was_changed_is_an_item_or_an_error(self) -> None:
        """A changed token gives an item, or an error of seekable."""
        for stream in self.streams():
            for token, _ in _pairs(iter(stream), 5) if stream.indexed else ():
                for changed in _changed(json.loads(json.dumps([token]))):
                    try:
                        stream[changed[0] if isinstance(changed, list) and changed else changed]
                    except SeekableError:
                        continue

    def test_a_copy_is_the_same_stream(self) -> None:
        """A copy that was pickled by value, as for worker processes, gives the same items."""
        for stream in self.streams():
            copy = cloudpickle.loads(cloudpickle.dumps(stream))
            if copy.fingerprint != stream.fingerprint:
                message = f"{copy!r} has another fingerprint than {stream!r}"
                raise AssertionError(message)
            if repr(copy) != repr(stream):
                message = f"{copy!r} is shown in another way than {stream!r}"
                raise AssertionError(message)
            found, wanted = _pairs(iter(copy), self.most), _pairs(iter(stream), self.most)
            if not same(found, wanted):
                message = f"a copy gave {found}, and the stream itself {wanted}"
                raise AssertionError(message)

    def _resumable(self) -> Iterator[Stream]:
        return (stream for stream in self.streams() if stream.checkpointable)


class _Factory:
    """A factory that returns a stream, cut to its first items."""

    def __init__(self, stream: Stream, most: int) -> None:
        self._stream, self._most = stream, most

    def __call__(self) -> Stream:
        return self._stream.take(self._most)


def _pairs(iterator: Any, most: int) -> list[Any]:
    """Return the next ``most`` items as pairs of token and item."""
    return [(iterator.token, item) for item in itertools.islice(iterator, most)]


def _states(stream: Stream, most: int) -> list[dict[str, Any]]:
    """Return the states before the first item and after each, after a JSON round trip."""
    iterator = iter(stream)
    states = [iterator.state_dict(rows=False)]
    states += [iterator.state_dict(rows=False) for _ in itertools.islice(iterator, most)]
    saved: list[dict[str, Any]] = json.loads(json.dumps(states))
    if not same(saved, states):
        message = f"a state is another after a round trip through JSON: {states[-1]}"
        raise AssertionError(message)
    return saved


def _changed(value: Any) -> Iterator[Any]:
    """Yield copies of a JSON value, each with one part changed or removed."""
    instead: tuple[Any, ...] = (None, -1, 1 << 70, "x", [], {}, [value])
    yield from (other for other in instead if not same(other, value))
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(parts):
        lost = value.copy()
        lost.pop(key)
        yield lost
        for changed in _changed(part):
            other = value.copy()
            other[key] = changed
            yield other


def _refused(stream: Stream, state: Any, kind: type[Exception]) -> None:
    iterator = iter(stream)
    try:
        iterator.load_state_dict(state)
    except kind:
        return
    message = f"this state was not refused by {stream!r}: {state}"
    raise AssertionError(message)
