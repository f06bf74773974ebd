"""A run over object stores, simulated: bytes, requests, cache, time, cost, how near reads are, and advice.

Nothing of the data is read. The order is that of the dataset, resolved position by position where the run has
at most some million records a node. Of longer runs a sample is resolved: the units that it has not touched
follow from those that it has. Each piece of advice is a change with the bytes and requests that it saves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from seekable._arguments import AT_ONCE, checked_choice, checked_count, explains_keywords
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.graph import each_once, known_size, nodes_of, with_children
from seekable.nodes.node import node_of
from seekable.nodes.shuffle import Shuffle
from seekable.nodes.windowed import WindowedShuffle
from seekable.remote.simulation.simulated_run import SimulatedRun, simulated
from seekable.remote.simulation.simulation_figures import EpochTransfer, Simulation
from seekable.storage.memory import bytes_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.nodes.node import Node

__all__ = ["DEFAULT_WINDOW", "EpochTransfer", "Simulation", "advice", "reshuffled", "simulate"]

DEFAULT_WINDOW = 16
"""The window of a shuffle of which only the lanes or the blocks are given."""


class Network(TypedDict, total=False):
    """What a run over object stores costs in time and money; see `simulate`."""

    link: float
    latency: float
    connection: float
    get_price: float
    list_price: float
    byte_price: float


_NETWORK: dict[str, float] = {
    "link": 1.25e9,
    "latency": 0.03,
    "connection": 80e6,
    "get_price": 0.4e-6,
    "list_price": 5e-6,
    "byte_price": 0.0,
}
"""The network of a usual machine, and the list prices of S3."""

_ELSEWHERE = {name: f'network={{"{name}": ...}}' for name in _NETWORK}
"""Where a value goes that people give to ``simulate`` itself."""

_MOST_RATE = 5500
"""The requests a second that S3 takes for one prefix before it scales."""

_SMALL_REQUEST = 1 << 20
_WINDOW, _LANES = 16, 8
_BLOCK_ROWS = 1024
_LARGE_BLOCK = 8 << 20
_GAIN = 0.9
"""A change is advised if it saves a tenth of the bytes."""


@explains_keywords(_ELSEWHERE)
def simulate(  # noqa: PLR0913 - the one public place that owns these defaults
    dataset: Dataset,
    *,
    nodes: int = 1,
    ranks: int = 1,
    global_batch_size: int,
    records_per_second: float,
    epochs: int = 1,
    cache: int | None = None,
    network: Network | None = None,
    window: int | None = None,
    lanes: int | None = None,
    block_rows: int | None = None,
) -> Simulation:
    r"""Return what a run over object stores will transfer, cost and wait for; nothing of the data is read.

    Args:
        dataset: the data in its order. Local files count as if they were objects.
        nodes: the number of machines.
        ranks: the ranks of each machine, which share its cache.
        global_batch_size: the records of a batch over all ranks.
        records_per_second: the records that all ranks together take in a second while they need not wait.
        epochs: the number of epochs.
        cache: the limit of the cache on the disk of a machine, in bytes; 0 for none, None for as much as is
            needed.
        network: what differs from the network of a usual machine and the list prices of S3 in 2026, in USD,
            as a dict of numbers: ``link``, the bytes a second of a machine (1.25e9); ``latency``, the seconds
            from a request to its first byte (0.03); ``connection``, the bytes a second of one request (80e6);
            ``get_price``, of a request (0.4e-6); ``list_price``, of a page of a listing (5e-6);
            ``byte_price``, of a byte, 0 within a region (0.0).
        window: shuffle with this window of blocks in place of the dataset's own shuffle.
        lanes: shuffle with this many lanes.
        block_rows: shuffle with blocks of at most so many records.

    Raises:
        InvalidArgument: an argument breaks a rule; or ``window``, ``lanes`` or ``block_rows`` is given, and
            nothing is shuffled.
        WrongType: an argument has a wrong type.
        EndlessDataset: the dataset has no end: simulate ``take(n)`` of it.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.jsonl").write_text('{"n": 1}\n' * 1000)
        ...     data = sk.open(folder).shuffle(seed=0)
        ...     run = {"nodes": 2, "global_batch_size": 10, "records_per_second": 100}
        ...     found = sk.simulate(data, **run)
        ...     far = sk.simulate(data, **run, network={"latency": 0.5})
        >>> found.requests, found.bytes, found.epochs[0].share
        (2, 18000, 2.0)
        >>> found.first_batch_seconds < far.first_batch_seconds
        True
    """
    if not isinstance(dataset, Dataset):
        got = type(dataset).__name__
        message = f"simulate() takes a Dataset (got {got}); of a stream simulate the dataset that it reads"
        raise WrongType(message)
    run = SimulatedRun(
        reshuffled(node_of(dataset), window=window, lanes=lanes, block_rows=block_rows),
        size=known_size(node_of(dataset), "simulate()"),
        nodes=checked_count("nodes", nodes, least=1, below=AT_ONCE),
        ranks=checked_count("ranks", ranks, least=1, below=AT_ONCE),
        batch=checked_count("global_batch_size", global_batch_size, least=1),
        rate=_positive("records_per_second", records_per_second),
        cache=None if cache is None else checked_count("cache", cache, least=0),
        **_checked_network(network),
        epochs=checked_count("epochs", epochs, least=1, below=1 << 16),
    )
    if run.batch % run.world:
        message = (
            f"global_batch_size={run.batch} must be a multiple of the {run.world} ranks "
            f"({nodes} nodes x {ranks}), so that each gets as many records of a batch"
        )
        raise InvalidArgument(message)
    if not run.size:
        raise InvalidArgument("the dataset is empty: there is nothing to simulate")
    found = simulated(run)
    return replace(found, advice=tuple(advice(run, found)))


def _checked_network(network: object) -> dict[str, float]:
    """Return all numbers of the network: those that are given, and the usual ones.

    Raises:
        WrongType: it is not a dict, or a value is not a number.
        InvalidArgument: a number has no such name, or is too small.
    """
    given = {} if network is None else network
    if not isinstance(given, Mapping):
        message = f"network must be a dict such as {{'latency': 0.1}} (got {network!r})"
        raise WrongType(message)
    for name in given:
        checked_choice("a name in network", name, _NETWORK)
    whole = {**_NETWORK, **given}
    return {
        name: (_positive if name in ("link", "connection") else _at_least_zero)(f"network[{name!r}]", value)
        for name, value in whole.items()
    }


def _positive(name: str, value: object) -> float:
    number = _at_least_zero(name, value)
    if not number:
        message = f"{name} must be above 0 (got {value!r})"
        raise InvalidArgument(message)
    return number


def _at_least_zero(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"{name} must be a number (got {value!r} of type {type(value).__name__})"
        raise WrongType(message)
    if not 0 <= value < float("inf"):
        message = f"{name} must be a finite number of at least 0 (got {value!r})"
        raise InvalidArgument(message)
    return float(value)


def reshuffled(node: Node, **changed: int | None) -> Node:
    """Return a dataset whose shuffles have another window, number of lanes or size of blocks.

    Args:
        node: the dataset.
        changed: ``window``, ``lanes`` and ``block_rows``; None for those of each shuffle.

    Raises:
        InvalidArgument: nothing is shuffled.
    """
    named = [(name, value) for name, value in changed.items() if value is not None]
    given = {name: checked_count(name, value, least=1) for name, value in named}
    if not given:
        return node
    made = _replaced(node, given)
    if made is node:
        message = "window, lanes and block_rows change a shuffle, and here is none: call shuffle() first"
        raise InvalidArgument(message)
    return made


def _replaced(node: Node, given: dict[str, int]) -> Node:
    if isinstance(node, WindowedShuffle):
        now = {"window": node.window, "lanes": node.dealt_to, "block_rows": node.block_rows, **given}
        return _windowed(node, now)
    if isinstance(node, Shuffle):
        return _windowed(node, {"window": DEFAULT_WINDOW, "lanes": 1, "block_rows": None, **given})
    below = {id(child): _replaced(child, given) for child in each_once(node.children)}
    if all(id(made) == old for old, made in below.items()):
        return node
    return with_children(node, below)


def _windowed(node: Shuffle | WindowedShuffle, now: dict[str, Any]) -> Node:
    return WindowedShuffle(node.child, node.seed, now["window"], now["lanes"], node.fixed, now["block_rows"])


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
