"""What goes between a loader and a worker arrives as it was, whichever way it takes."""

from __future__ import annotations

import os
import select
import socket
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.errors import WorkerHung
from seekable.loader import worker_messages as module
from seekable.loader.steps import StepCursor
from seekable.loader.worker import Ready
from seekable.loader.worker_messages import Closed, Connection, SharedBuffers, memory_without_name
from seekable.loader.worker_pool import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

BUFFERS = 3
BUFFER = module._BUFFER_BYTES


@pytest.fixture(scope="module")
def ends() -> Iterator[tuple[Connection, Connection]]:
    """A worker's end and its parent's."""
    worker, parent = socket.socketpair()
    memory = memory_without_name()
    pair = (
        Connection(worker, SharedBuffers(memory, BUFFERS)),
        Connection(parent, SharedBuffers(memory, BUFFERS)),
    )
    os.close(memory)
    yield pair
    for end in pair:
        end.close()


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


ARRAYS = st.builds(
    lambda size, dtype: np.arange(size).astype(dtype),
    st.sampled_from([0, 1, 100, 8191, 8192, 8193, 70_000]),
    st.sampled_from(["u1", "<i8", "<f4"]),
)
TEXTS = st.builds(lambda unit, times: unit * times, st.text(max_size=3), st.sampled_from([1, 1000, 60_000]))
BATCHES = st.dictionaries(
    st.text(max_size=3), st.lists(ARRAYS | TEXTS | st.integers(), max_size=3), max_size=3
)


@given(batches=st.lists(BATCHES, min_size=1, max_size=2 * BUFFERS))
def test_whatever_is_sent_is_received(ends: tuple[Connection, Connection], batches: list[Any]) -> None:
    worker, parent = ends
    for number, batch in enumerate(batches):
        worker.send(batch, tag=1, buffer=number % BUFFERS)
        assert same(batch, parent.receive(1))


@pytest.mark.parametrize("size", [BUFFER - 1000, BUFFER, BUFFER + 1, 3 * BUFFER])
@pytest.mark.parametrize("array", [0, 10, 1 << 20])
def test_what_is_too_large_for_a_buffer_arrives_too(
    ends: tuple[Connection, Connection], size: int, array: int
) -> None:
    worker, parent = ends
    batch = {"text": ["a" * size, "b"], "array": np.arange(array)}
    assert worker.send(batch, tag=1, buffer=0) >= size
    assert same(batch, parent.receive(1))


def test_what_was_taken_out_does_not_change_when_its_buffer_is_used_again(
    ends: tuple[Connection, Connection],
) -> None:
    worker, parent = ends
    worker.send(["first", np.zeros(100)], tag=1, buffer=0)
    first = parent.receive(1)
    worker.send(["other", np.ones(100)], tag=1, buffer=0)
    assert same(parent.receive(1), ["other", np.ones(100)])
    assert same(first, ["first", np.zeros(100)])


def test_arrays_can_be_written_to(ends: tuple[Connection, Connection]) -> None:
    worker, parent = ends
    for size in (10, 1 << 20):
        worker.send(np.zeros(size), tag=1, buffer=1)
        array = parent.receive(1)
        array += 1
        assert array.sum() == size


def test_messages_of_an_earlier_run_are_dropped(ends: tuple[Connection, Connection]) -> None:
    worker, parent = ends
    for buffer, batch in (
        (0, "small"),
        (1, "large" * 100_000),
        (2, np.zeros(1 << 20)),
        (None, "without a buffer"),
    ):
        worker.send(batch, tag=1, buffer=buffer)
        assert parent.receive(2) is None
    worker.send("of any run")
    assert parent.receive(2) == "of any run"
    worker.send("of this run", tag=2, buffer=0)
    assert parent.receive(2) == "of this run"


def test_an_item_that_cannot_be_pickled_leaves_nothing_behind(ends: tuple[Connection, Connection]) -> None:
    worker, parent = ends

    class Refuses:
        def __reduce__(self) -> Any:
            raise OSError("not this")

    with pytest.raises(OSError, match="not this"):
        worker.send(["x" * 100_000, Refuses()], tag=1, buffer=0)
    assert worker.whole
    worker.send("next", tag=1, buffer=0)
    assert parent.receive(1) == "next"


def test_an_end_that_is_gone_is_told() -> None:
    one, other = socket.socketpair()
    with one:
        other.close()
        left = Connection(one)
        with pytest.raises(Closed):
            left.receive()
        with pytest.raises(Closed):
            left.send("x")


def test_the_time_in_which_a_worker_starts_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = (Connection(end) for end in socket.socketpair())
    worker = object.__new__(WorkerProcess)
    worker.connection, worker._is_ready = ours, False
    now, answers = [0.0], [False, False, True, True, False]

    class Poll:
        def register(self, *_: Any) -> None:
            pass

        def poll(self, _: float) -> bool:
            now[0] += 5.0
            return answers.pop(0)

    monkeypatch.setattr(select, "poll", Poll)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    theirs.send(Ready())
    assert worker.receive(1, 2.0, StepCursor()) is None
    theirs.send("a result", tag=1)
    assert worker.receive(1, 2.0, StepCursor()) == "a result"
    for name, value in (("_stack", lambda _: "its stack"), ("_shown", "a process"), ("end", lambda _: None)):
        monkeypatch.setattr(WorkerProcess, name, value)
    with pytest.raises(WorkerHung, match=r"timeout=2 seconds.*\n*its stack"):
        worker.receive(1, 2.0, StepCursor())
    assert not answers
    ours.close()
    theirs.close()
