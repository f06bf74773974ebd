"""The figures of a simulated run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EpochTransfer", "Simulation"]


@dataclass(frozen=True, slots=True)
class EpochTransfer:
    """The transfers of one epoch.

    Attributes:
        epoch: the index of the epoch, from 0.
        bytes: the mean number of bytes that a node fetches.
        most_bytes: the most bytes that a node fetches.
        requests: the mean number of requests of a node.
        share: the bytes that all nodes fetch, as a share of the bytes of the data.
        hit_ratio: the share of the bytes that the ranks of a node need and do not fetch. They need units of
            256 KiB, and each counts once a rank and epoch.
    """

    epoch: int
    bytes: int
    most_bytes: int
    requests: int
    share: float
    hit_ratio: float


@dataclass(frozen=True, slots=True)
class Simulation:
    """The figures of a run; those of a node are means over the nodes.

    Attributes:
        nodes: the number of machines.
        ranks: the ranks of each.
        records: the records of an epoch.
        data_bytes: the bytes of all files.
        is_exact: True if every position was resolved, False if a part of them was.
        epochs: what each epoch transfers.
        bytes: the bytes that all nodes fetch in all epochs.
        requests: the requests of all nodes in all epochs.
        requests_a_second: the mean requests a second of all nodes to the folder that gets most of them.
        hit_ratio: that share over all epochs.
        cache_bytes: the limit of the cache of a node.
        peak_disk_bytes: the most bytes that the cache of a node holds.
        seconds: the time of the run.
        first_batch_seconds: the time to the first batch, the index being there.
        stalls: how often a rank waits for bytes.
        stall_seconds: the seconds for which it waits.
        link_use: the share of the link of a node that is used, on average.
        cost: the price of requests, listings and bytes, in the currency of the prices.
        neighbours: the share of neighbours in a batch that lie in one block of 1,024 records.
        blocks_in_batch: the mean number of such blocks in a batch of all ranks.
        mean_jump: the mean distance between neighbours, in units of that of random places.
        advice: what to change, each with what it gives.
    """

    nodes: int
    ranks: int
    records: int
    data_bytes: int
    is_exact: bool
    epochs: tuple[EpochTransfer, ...]
    bytes: int
    requests: int
    requests_a_second: float
    hit_ratio: float
    cache_bytes: int
    peak_disk_bytes: int
    seconds: float
    first_batch_seconds: float
    stalls: int
    stall_seconds: float
    link_use: float
    cost: float
    neighbours: float
    blocks_in_batch: float
    mean_jump: float
    advice: tuple[str, ...]
