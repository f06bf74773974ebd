"""Batches that are copied to a device: the same ones, which count as delivered when the loop has them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from tests.loader.busy import slow

import seekable as sk
from seekable.loader.batches import MadeBatch
from seekable.loader.devices import OnDevice, _mapped, sent_to
from seekable.loader.producers import Prefetched
from seekable.loader.steps import StepCursor

if TYPE_CHECKING:
    from collections.abc import Iterator


class Point(NamedTuple):
    x: Any
    y: Any


class Host:
    """A device that is this host: what arrives there are copies, and it notes which thread sends."""

    def __init__(self) -> None:
        self.senders: set[str] = set()
        self.sent: list[Any] = []
        self.interrupts = 0

    def begin(self) -> Host:
        return self

    def send(self, value: Any) -> Any:
        self.senders.add(threading.current_thread().name)
        self.sent.append(value)
        return ("sent", value)

    def take(self, sent: Any) -> Any:
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt
        return ("here", sent[1])


def loading(host: Host, **arguments: Any) -> sk.Loader:
    given = {"batch_size": 4, "collate": list, **arguments}
    loader = sk.Loader(sk.from_sequence(range(37)).shuffle(seed=3), **given)
    loader._producer.device = host
    return loader


PLAIN = list(sk.Loader(sk.from_sequence(range(37)).shuffle(seed=3), batch_size=4, collate=list))


@pytest.mark.parametrize(
    "arguments",
    [
        {"prefetch": 0},
        {"prefetch": 2},
        {"workers": sk.Workers(2, type="thread")},
        pytest.param({"workers": 1}, id="processes"),
    ],
)
def test_each_batch_comes_there_once_and_is_counted_when_it_is_taken(arguments: dict[str, Any]) -> None:
    host = Host()
    with loading(host, **arguments) as loader:
        run = iter(loader)
        seen = [next(run) for _ in range(3)]
        assert seen == [("here", batch) for batch in PLAIN[:3]]
        assert loader.step == 3
        state = loader.state_dict()
        assert [*seen, *run] == [("here", batch) for batch in PLAIN]
        # A live run goes back: what was sent ahead is dropped.
        loader.load_state_dict(state)
        run = iter(loader)
        first = next(run)
        loader.load_state_dict(state)
        assert [first, *run] == [("here", batch) for batch in (PLAIN[3], *PLAIN[3:])]
    main = threading.current_thread().name
    assert (main in host.senders) == (arguments.get("prefetch") == 0)


def test_no_more_than_two_batches_are_sent_ahead() -> None:
    host = Host()
    with loading(host) as loader:
        run = iter(loader)
        next(run)
        while len(host.sent) < 3:
            slow(0)
        for _ in range(20):
            slow(0)
        assert len(host.sent) == 3


def made(count: int) -> Iterator[MadeBatch]:
    for step in range(count):
        yield MadeBatch(step, 1, 0, StepCursor(step + 1))


@pytest.mark.parametrize("ahead", [True, False])
def test_an_interrupt_loses_no_batch(*, ahead: bool) -> None:
    host = Host()
    sent = sent_to(host, made(5))
    batches = OnDevice(Prefetched(sent, depth=1) if ahead else sent, host)
    values = [next(batches).value]
    host.interrupts = 1
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    values += [batch.value for batch in batches]
    assert values == [("here", step) for step in range(5)]
    assert batches.outlives_interrupts == ahead


def test_an_error_on_the_way_comes_in_the_place_of_its_batch() -> None:
    class Full(Host):
        def send(self, value: Any) -> Any:
            if len(self.sent) == 2:
                raise MemoryError("the device is full")
            return super().send(value)

    with loading(Full()) as loader:
        run = iter(loader)
        assert [next(run), next(run)] == [("here", batch) for batch in PLAIN[:2]]
        with pytest.raises(MemoryError, match="full"):
            next(run)
        assert loader.step == 2


def test_a_closed_run_lets_its_source_go() -> None:
    closed = threading.Event()

    def source() -> Iterator[MadeBatch]:
        try:
            yield from made(100)
        finally:
            closed.set()

    host = Host()
    batches = OnDevice(Prefetched(sent_to(host, source()), depth=1), host)
    next(batches)
    batches.close()
    assert closed.wait(60)


def test_copies_go_into_dicts_lists_and_tuples() -> None:
    batch = {"a": [np.ones(2), "text"], "b": (1, Point(np.zeros(1), None)), "c": {"d": b"raw"}}
    copied = _mapped(batch, lambda part: "copy" if isinstance(part, np.ndarray) else part)
    assert copied == {"a": ["copy", "text"], "b": (1, Point("copy", None)), "c": {"d": b"raw"}}
    assert type(copied["b"][1]) is Point


def test_what_is_no_device_is_refused_when_the_loader_is_made() -> None:
    for device in (0, b"cuda", ["cuda"]):
        with pytest.raises(sk.errors.WrongType, match="device must be a name such as 'cuda'"):
            sk.Loader(sk.from_sequence(range(3)), device=device)
