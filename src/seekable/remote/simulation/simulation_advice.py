"""Advice on a run over object stores: changes, each with the bytes and requests that it saves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seekable.nodes.graph import nodes_of
from seekable.nodes.shuffle import Shuffle
from seekable.nodes.windowed import WindowedShuffle
from seekable.remote.simulation.simulated_run import SimulatedRun, simulated
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.nodes.node import Node
    from seekable.remote.simulation.figures import Simulation

__all__ = ["advice"]

_MOST_RATE = 5500
"""The requests a second that S3 takes for one prefix before it scales."""

_SMALL_REQUEST = 1 << 20
_WINDOW, _LANES = 16, 8
_BLOCK_ROWS = 1024
_LARGE_BLOCK = 8 << 20
_GAIN = 0.9
"""A change is advised if it saves a tenth of the bytes."""


def advice(run: SimulatedRun, found: Simulation) -> Iterator[str]:
    """Yield what to change, the first first.

    Args:
        run: the simulated run.
        found: its figures.
    """
    shuffle = _shuffle_of(run.node)
    block_rows = shuffle.block_rows if isinstance(shuffle, WindowedShuffle) else None
    block = bytes_in_words(round((block_rows or _BLOCK_ROWS) * found.data_bytes / found.records))
    if found.cache_bytes < found.data_bytes and found.hit_ratio < 1 and found.bytes:
        more = simulated(replace(run, cache=found.data_bytes))
        if more.bytes < _GAIN * found.bytes:
            yield (
                f"a cache of {bytes_in_words(more.peak_disk_bytes)} a node: {_gain(found, more)} "
                f"(now {bytes_in_words(found.cache_bytes)})"
            )
    if isinstance(shuffle, Shuffle) and found.epochs[0].share > 1 / _GAIN:
        lanes = _LANES * run.world
        yield (
            f"shuffle(window={_WINDOW}, lanes={lanes}): each node then fetches its own part of the data, "
            f"and not {found.epochs[0].share / run.nodes:.0%} of it; simulate it with --window and --lanes"
        )
    if isinstance(shuffle, WindowedShuffle):
        if shuffle.lanes % run.world:
            lanes = -(-shuffle.lanes // run.world) * run.world
            yield (
                f"lanes={lanes}: {shuffle.lanes} lanes are no multiple of the {run.world} ranks, so several "
                f"nodes fetch the blocks of one lane"
            )
        elif found.epochs[0].share > 1 / _GAIN:
            rows = -(-_LARGE_BLOCK * found.records // max(1, found.data_bytes))
            yield (
                f"fewer lanes, or block_rows={rows}: all nodes fetch {found.epochs[0].share:.2f} times the "
                f"data, because {shuffle.lanes} lanes cut blocks, and a block of {block} is fetched in "
                f"whole units of 256 KiB"
            )
    mean = found.bytes / found.requests if found.requests else _SMALL_REQUEST
    if found.requests_a_second > _MOST_RATE:
        yield (
            f"larger requests, or the data in several folders: {found.requests_a_second:,.0f} requests a "
            f"second of {bytes_in_words(round(mean))} go to one folder; a store takes about {_MOST_RATE:,}"
        )
    if found.stall_seconds > 0.05 * found.seconds:
        yield (
            f"more nodes or a faster link: a rank waits {found.stall_seconds / found.seconds:.0%} of the "
            f"time, and {found.link_use:.0%} of the link is used"
        )


def _gain(before: Simulation, after: Simulation) -> str:
    return (
        f"{bytes_in_words(after.bytes)} and {after.requests:,} requests in place of "
        f"{bytes_in_words(before.bytes)} and {before.requests:,}"
    )


def _shuffle_of(node: Node) -> Shuffle | WindowedShuffle | None:
    """Return the shuffle that is met first, None without one."""
    # The nodes above come last; of two side by side the first one is met.
    return next(
        (each for each in reversed(nodes_of(node)) if isinstance(each, Shuffle | WindowedShuffle)), None
    )
