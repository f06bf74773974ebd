"""The time of requests: when they begin and end, and when their reader waits. A simulation of events."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from seekable.remote.simulation.replay import Requests

__all__ = ["Network", "Times", "run_clock"]

_MOST_REQUESTS = 200_000
"""The requests whose events are simulated; the rest of a longer run goes on at their pace."""


@dataclass(frozen=True, slots=True)
class Network:
    """The way from a store to a node.

    Attributes:
        link: the bytes a second of all requests together.
        latency: the seconds from sending a request to its first byte.
        connection: the bytes a second of one request.
        at_once: the most requests at a time.
        ahead_bytes: the most bytes that are requested ahead of the reader.
    """

    link: float
    latency: float
    connection: float
    at_once: int
    ahead_bytes: int


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one node.

    Attributes:
        seconds: the time of all records.
        first_batch_seconds: the time until the last request of the first batch has ended.
        stalls: the number of times that the reader waits, the first batch not counted.
        stall_seconds: the time for which it waits, that of the first batch not counted.
    """

    seconds: float
    first_batch_seconds: float
    stalls: int
    stall_seconds: float


def run_clock(
    requests: Requests, network: Network, *, rows: int, batch_rows: int, rows_a_second: float
) -> Times:
    """Return the times of a reader that needs its records in their order.

    Args:
        requests: the requests, by the first record that needs each.
        network: the way to the store.
        rows: the number of records.
        batch_rows: the number of records of the first batch.
        rows_a_second: the records that the reader takes in a second while it need not wait.

    Example:
        >>> from seekable.remote.simulation.replay import Requests
        >>> one = Requests(*np.array([[0], [1_000_000], [0], [0]]))
        >>> network = Network(link=1e6, latency=0.5, connection=1e6, at_once=1, ahead_bytes=1 << 20)
        >>> run_clock(one, network, rows=100, batch_rows=10, rows_a_second=100)
        Times(seconds=2.5, first_batch_seconds=1.5, stalls=0, stall_seconds=0.0)
    """
    some = min(requests.rows.size, _MOST_REQUESTS)
    sizes = requests.sizes[:some]
    before = np.cumsum(sizes) - sizes
    needed: list[float] = []
    places = [0.0] * network.at_once
    begun_by = 0
    now, at_row, link_free, first, stalls, waited = 0.0, 0, 0.0, 0.0, 0, 0.0
    columns = (requests.rows[:some].tolist(), sizes.tolist(), before.tolist())
    ends = (before + sizes).tolist()
    for row, size, start_bytes in zip(*columns, strict=True):
        while (
            begun_by < len(needed)
            and start_bytes + size - (ends[begun_by - 1] if begun_by else 0) > network.ahead_bytes
        ):
            begun_by += 1
        start = max(heapq.heappop(places), needed[begun_by - 1] if begun_by else 0.0)
        link_free = max(start + network.latency, link_free) + size / network.link
        end = max(link_free, start + network.latency + size / network.connection)
        heapq.heappush(places, end)
        due = now + (row - at_row) / rows_a_second
        if row < batch_rows:
            first = max(first, end)
        elif end > due:
            stalls += 1
            waited += end - due
        now, at_row = max(due, end), row
        needed.append(now)
    share = 1.0 if some == requests.rows.size or not at_row else rows / at_row
    seconds = now * share + (rows - at_row * share) / rows_a_second
    return Times(seconds, first, round(stalls * share), waited * share)
