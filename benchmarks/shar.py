"""Shar: random cuts with their payloads, decoded and not, against Lhotse; and a part of an hour of audio.

A cut is a line of about 600 bytes and a pair of members: 20 kB of WAV, and its manifest.
"""

from __future__ import annotations

import importlib
import os
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks import tar_data, tar_floors
from benchmarks.competitors import LHOTSE
from benchmarks.measure import Contestant, Row, Target, absolute, missing, race, shown
from benchmarks.tars import each, faster, over

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data
    from benchmarks.measure import Timed

_BATCH = 256
_MOST_ROUNDS = 5
_SECOND = 1800
"""The second of the hour that is read."""

_TIMES = 200


def rows(data: Data, peer: str = "lhotse") -> Iterator[Row]:
    """Measure all of it."""
    rounds = min(data.sizes.rounds, _MOST_ROUNDS)
    yield from _cuts(data, rounds, peer)
    yield from _part(data, rounds)


def _cuts(data: Data, rounds: int, peer: str) -> Iterator[Row]:
    folder = tar_data.shar(data)
    raw = sk.open(f"shar:{folder}", decode="bytes")
    heard = sk.open(f"shar:{folder}", decode="audio")
    lines = sk.open(f"shar:{folder}", columns=["id", "supervisions"])
    order = np.random.default_rng(1).permutation(len(raw)).tolist()
    batches = [order[first : first + _BATCH] for first in range(0, len(order), _BATCH)]
    floor = tar_floors.Shar.of(folder)

    def read(records: Any) -> Contestant:
        return Contestant(lambda: [None for batch in batches if not records[batch]], count=len(order))

    contestants: dict[str, Timed] = {
        "raw": read(raw),
        "heard": read(heard),
        "lines": read(lines),
        "raw floor": Contestant(lambda: [floor.raw(batch) for batch in batches][:0], count=len(order)),
        "heard floor": Contestant(lambda: [floor.heard(batch) for batch in batches][:0], count=len(order)),
        "lines floor": Contestant(lambda: [floor.cuts(batch) for batch in batches][:0], count=len(order)),
    }
    theirs = _lhotse(peer, folder)
    if theirs is not None:
        some = order[:1_000]
        contestants["lhotse"] = Contestant(lambda: each(theirs, some), count=len(some))
        loaded = Contestant(lambda: [theirs[row].load_audio() for row in some][:0], count=len(some))
        contestants["lhotse audio"] = loaded
    times = race(contestants, rounds=rounds)
    floor.close()
    cut, audio = "random cuts of Shar and their payloads", "random cuts of Shar, WAV decoded"
    yield over(cut, times, "raw", "raw floor", Target("at most", 2), "two preads and JSON")
    against = f"two preads, JSON and numpy {shown(1e6 * times.median('heard floor'))}"
    yield absolute(audio, 1e6 * times.median("heard"), "us", Target("at most", 40), against=against)
    name = "random cuts of Shar, no payload"
    yield over(name, times, "lines", "lines floor", Target("at most", 2), "a pread and JSON")
    for name, ours, other in ((cut, "raw", "lhotse"), (audio, "heard", "lhotse audio")):
        if other in contestants:
            yield faster(name, times, ours, other, None, label=LHOTSE)
        else:
            yield missing(name, 1e6 * times.median(ours), "us", None, peer=LHOTSE)


def _lhotse(peer: str, folder: str) -> Any:
    """Return Lhotse's reader of single cuts over its own indexes, or None if it is not installed."""
    try:
        cut_set: Any = importlib.import_module(peer).CutSet
    except ModuleNotFoundError:
        return None
    fields: dict[str, list[str]] = {"cuts": [], "recording": []}
    for name in sorted(os.listdir(folder)):
        if name.endswith((".jsonl", ".tar")):
            fields[name.partition(".")[0]].append(os.path.join(folder, name))
    return cut_set.from_shar(fields=fields, indexed=True).data


def _part(data: Data, rounds: int) -> Iterator[Row]:
    path = tar_data.long_audio(data)
    ds = sk.open(path, decode={"wav": sk.audio(offset=_SECOND, duration=1)})
    with tarfile.open(path, "r:") as tar:
        start = tar.getmembers()[0].offset_data + 44 + _SECOND * 32_000
    file = os.open(path, os.O_RDONLY)
    [samples, rate] = ds[0]["wav"]
    assert (len(samples), rate) == (16_000, 16_000)

    def floor() -> None:
        for _ in range(_TIMES):
            np.frombuffer(os.pread(file, 32_000, start), "<i2").astype(np.float32) / 32768

    contestants: dict[str, Timed] = {
        "ours": Contestant(lambda: each(ds, [0] * _TIMES), count=_TIMES),
        "floor": Contestant(floor, count=_TIMES),
    }
    times = race(contestants, rounds=rounds)
    against = f"pread and numpy {shown(1e6 * times.median('floor'))}"
    figure = 1e6 * times.median("ours")
    name = "one second out of an hour of WAV"
    yield absolute(name, figure, "us", Target("at most", 150), against=against)
    os.close(file)
