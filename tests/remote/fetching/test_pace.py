from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from seekable.remote.fetching.sending import Pace, Patience, Retrying, may_hedge

SECONDS = st.floats(0.0, 3.0)
EVENTS = st.lists(
    st.tuples(SECONDS, st.sampled_from(["send", "answer", "refuse"]), st.none() | st.floats(0.0, 5.0)),
    max_size=60,
)


@given(st.floats(1.0, 2000.0), st.floats(1.0, 64.0), EVENTS)
def test_no_more_is_sent_than_the_highest_rate_and_the_burst_permit(
    rate: float, burst: float, events: list[tuple[float, str, float | None]]
) -> None:
    pace, now, most = Pace(rate, burst), 0.0, rate
    sent: list[float] = []
    stopped = 0.0
    for passed, kind, retry_after in events:
        now += passed
        if kind == "send":
            at = now + pace.reserve(now)
            assert at >= stopped - 1e-6
            sent.append(at)
        elif kind == "answer":
            pace.answered(now)
        else:
            pace.refused(now, retry_after=retry_after)
            stopped = max(stopped, now + (retry_after or 0.0))
        most = max(most, pace.rate)
    sent.sort()
    for first, last in itertools.combinations(range(len(sent)), 2):
        # Between two requests lie as many as the burst, and what the rate adds meanwhile. Requests that a
        # stop has held back go out at its end together.
        held = sum(abs(at - sent[last]) < 1e-6 for at in sent)
        assert last - first <= burst + held + most * (sent[last] - sent[first]) + 1e-3


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=50))
def test_refusals_cut_the_rate_at_most_once_in_100_ms(waits: list[float]) -> None:
    pace, now, cuts = Pace(1000.0, 64.0), 0.0, []
    for wait in waits:
        now += wait
        before = pace.rate
        pace.refused(now, retry_after=None)
        if pace.rate < before:
            assert pace.rate == max(1.0, 0.7 * before)
            cuts.append(now)
    assert cuts[0] == waits[0]
    assert all(later - earlier >= 0.1 for earlier, later in itertools.pairwise(cuts))


def test_the_rate_doubles_only_while_it_holds_requests_back() -> None:
    pace = Pace(10.0, 1.0)
    for second in range(4):
        pace.answered(float(second))
    assert pace.rate == 10.0
    for _ in range(3):
        pace.reserve(4.0)
    pace.answered(5.0)
    assert pace.rate == 20.0
    pace.refused(6.0, retry_after=None)
    assert pace.rate == 14.0
    pace.reserve(6.0)
    pace.answered(8.0)
    assert pace.rate == 14.5


@dataclass
class ScriptedServer:
    """Allows so many requests a second, and refuses the others."""

    allowed: float
    answered: list[float] = field(default_factory=list)

    def answers(self, now: float) -> bool:
        good = sum(at > now - 1.0 for at in self.answered) < self.allowed
        if good:
            self.answered.append(now)
        return good


def test_a_server_of_50_requests_a_second_answers_all_of_300() -> None:
    pace, server, now, sent = Pace(1000.0, 64.0), ScriptedServer(50), 0.0, 0
    done = 0
    while done < 300:
        now += pace.reserve(now) + 0.001
        sent += 1
        if server.answers(now):
            pace.answered(now)
            done += 1
        else:
            pace.refused(now, retry_after=None)
    assert sent < 600
    assert now < 30.0


@given(
    st.integers(1, 20),
    st.floats(0.1, 100.0),
    st.lists(st.tuples(SECONDS, st.floats(0.0, 1.0), st.none() | st.floats(0.0, 9.0)), max_size=30),
)
def test_tries_and_waits_are_bounded(
    tries: int, total: float, failures: list[tuple[float, float, float | None]]
) -> None:
    retrying, now = Retrying(Patience(tries=tries, total_seconds=total), 0.0), 0.0
    for number, (passed, share, retry_after) in enumerate(failures, 1):
        now += passed
        wait = retrying.wait_after_failure(now, share=share, retry_after=retry_after)
        if wait is None:
            late = now + max(retry_after or 0.0, share * min(15.0, 0.1 * 2 ** (number - 1))) > total
            assert number >= tries or late
            return
        assert number < tries
        assert (retry_after or 0.0) <= wait <= max(15.0, retry_after or 0.0)
        now += wait
        assert now <= total


@given(st.lists(st.booleans(), max_size=400))
def test_at_most_5_percent_of_requests_are_hedged(lates: list[bool]) -> None:
    hedges = 0
    for requests, is_late in enumerate(lates, 1):
        if is_late and may_hedge(
            4096, hedges=hedges, requests=requests, since_refusal=9.0, is_place_free=True
        ):
            hedges += 1
        assert hedges <= max(1.0, 0.05 * requests + 1)


def test_hedges_wait_for_calm_and_never_double_long_requests() -> None:
    calm = partial(may_hedge, hedges=0, requests=1000, since_refusal=9.0, is_place_free=True)
    assert calm(8 << 20)
    assert not calm((8 << 20) + 1)
    assert not calm(1, since_refusal=0.5)
    assert not calm(1, is_place_free=False)
