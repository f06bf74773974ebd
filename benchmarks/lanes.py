"""A mixture that is filtered and packed in lanes, beside the library that does the same by replay."""

from __future__ import annotations

import collections
import functools
import itertools
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.measure import Contestant, Row, Target, absolute, missing, race, relative, shown
from benchmarks.subprocess_peer import Away, Library, visiting

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.data import Data
    from benchmarks.measure import Timed

LIBRARIES = {"zephon": Library("Zephon 0.2.0", "benchmarks.opponents.zephon")}
_DOCUMENTS = 18_000
_WEIGHTS = {"a": 0.7, "b": 0.3}
_SHARDS = {"small": 60, "larger": 4}
"""The number of files of all documents, about."""
_CHUNKS = {"chunks of 256": 256, "chunks of 1,024": 1024, "default chunks": None}
"""The documents that Zephon hands to a lane at once."""
_CUTS = (4, 120, 280, 600)
"""The batches after which a run is restarted."""
_LANES, _LENGTH, _BATCH, _READ = 4, 2048, 2, 128
_ROUNDS = 2
_SINGLE = 2000
_WHAT = "2 sources filtered, packed in 4 lanes"


def rows(data: Data, libraries: Mapping[str, Library] = LIBRARIES) -> Iterator[Row]:
    """Measure a run, its states and restarts, other ranks and single records, in small and larger files."""
    folder = documents(data)
    rounds = min(_ROUNDS, data.sizes.rounds)
    apart = os.path.join(data.folder, f"{os.path.basename(folder)}-apart")
    with visiting(libraries["zephon"], source=folder, folder=apart) as zephon:
        for shards in _SHARDS:
            ours = _Ours.over(os.path.join(folder, shards))
            yield _run(ours, zephon, shards, rounds=rounds)
            yield from _restarts(ours, zephon, shards, rounds=data.sizes.trials)
        yield _ranks(ours, zephon, shards)
        yield from _records(ours, zephon, shards, rounds=rounds)


def documents(data: Data) -> str:
    """Return a folder with the same documents, of about 300 tokens, in small and in larger files."""
    count = min(_DOCUMENTS, data.sizes.records)
    folder = os.path.join(data.folder, f"documents-{count}")
    if os.path.exists(folder):
        return folder
    new = f"{folder}.{os.getpid()}.new"
    for shards, files in _SHARDS.items():
        random = np.random.default_rng(0)
        for name, weight in _WEIGHTS.items():
            os.makedirs(os.path.join(new, shards, name))
            lines = [_line(random) for _ in range(round(count * weight))]
            parts = np.array_split(np.arange(len(lines)), max(1, round(files * weight)))
            for number, rows_of_part in enumerate(parts):
                path = os.path.join(new, shards, name, f"part-{number:03}.jsonl")
                with open(path, "w", encoding="ascii") as file:
                    file.writelines(lines[row] for row in rows_of_part.tolist())
    os.rename(new, folder)
    return folder


def _line(random: np.random.Generator) -> str:
    """Return a document; of five, four are kept."""
    tokens = random.integers(0, 50_000, max(8, int(random.lognormal(5.3, 0.9)))).tolist()
    return json.dumps({"keep": bool(random.random() < 0.8), "tokens": tokens}) + "\n"


def is_kept(record: dict[str, Any]) -> bool:
    """Return True for the documents that pass the filter."""
    return bool(record["keep"])


@dataclass(frozen=True, slots=True)
class _Ours:
    """The same pipeline as Zephon's, over one size of files; each source is shuffled as a whole."""

    mixed: sk.Dataset

    @classmethod
    def over(cls, folder: str) -> _Ours:
        parts = {name: sk.open(os.path.join(folder, name)).shuffle(seed=1) for name in _WEIGHTS}
        return cls(sk.mix(parts, weights=_WEIGHTS, seed=0))

    def loader(self, *, epochs: int | None = 1, **given: Any) -> sk.Loader:
        stream = self.mixed.stream(lanes=_LANES, epochs=epochs).filter(is_kept).pack(_LENGTH, key="tokens")
        return sk.Loader(stream, **{"global_batch_size": _BATCH, "collate": list, **given})

    def run(self) -> None:
        """Deliver all batches of a run."""
        with self.loader() as loader:
            collections.deque(loader, maxlen=0)

    def states(self) -> dict[int, str]:
        """Return the states of a run after some of its batches."""
        with self.loader(prefetch=0) as loader:
            states = [json.dumps(loader.state_dict()) for _ in loader]
        cuts = [cut for cut in _CUTS if cut < len(states)] or [1]
        return {cut: states[cut - 1] for cut in cuts}

    def restarted(self, state: str) -> None:
        """Go on at a state, to the next batch."""
        with self.loader(prefetch=0) as loader:
            loader.load_state_dict(json.loads(state))
            next(iter(loader), None)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A contestant in the other process."""

    opponent: Away
    call: str
    count: int
    arguments: dict[str, Any]

    def seconds(self) -> float:
        taken: float = self.opponent.ask("asked", call=self.call, **self.arguments)
        return taken / self.count


def _run(ours: _Ours, zephon: Away, shards: str, *, rounds: int) -> Row:
    """Measure a whole run, against that chunk size of Zephon which is best for it."""
    count = len(ours.mixed)
    contestants: dict[str, Timed] = {"ours": Contestant(ours.run, count=count)}
    if zephon.absent is None:
        for chunk, size in _CHUNKS.items():
            contestants[chunk] = _Asked(zephon, "run", count, {"shards": shards, "chunk": size})
    times = race(contestants, rounds=rounds)
    theirs = {chunk: times.median(chunk) * 1e6 for chunk in list(contestants)[1:]}
    text = ", ".join(f"{chunk} {shown(median)}" for chunk, median in theirs.items())
    ratio = min((times.ratio(chunk, "ours") for chunk in theirs), default=0.0)
    name = f"{_WHAT}, {shards} files: a document"
    return _compared(name, times.median("ours") * 1e6, "us", zephon, text, ratio, least=2)


def _restarts(ours: _Ours, zephon: Away, shards: str, *, rounds: int) -> Iterator[Row]:
    """Measure the states and the restarts at some cuts; the ratios are those of the last one."""
    states = ours.states()
    cuts = list(states)
    contestants = {str(cut): Contestant(functools.partial(ours.restarted, states[cut])) for cut in cuts}
    times = race(contestants, rounds=rounds)
    size, last = max(map(_bytes, states.values())), str(cuts[-1])
    seconds = max(times.median(str(cut)) for cut in cuts)
    name = f"{_WHAT}, {shards} files, after {_listed(cuts)} batches"
    for chunk, documents_at_once in _CHUNKS.items():
        arguments = {"shards": shards, "chunk": documents_at_once, "cuts": cuts}
        found = [] if zephon.absent else zephon.ask("asked", call="restarts", **arguments)
        bytes_of, seconds_of = ([each[key] for each in found] for key in ("bytes", "seconds"))
        text = f"{chunk}: {_listed(bytes_of)}"
        ratio = bytes_of[-1] / size if found else 0.0
        yield _compared(f"{name}: largest state", size, "bytes", zephon, text, ratio)
        text = f"{chunk}: {_listed([round(each * 1e3) for each in seconds_of])}"
        ratio = seconds_of[-1] / times.median(last) if found else 0.0
        wrong = next((each["wrong"] for each in found if each["wrong"]), None)
        restart = f"{name}: slowest restart"
        if wrong:
            yield missing(restart, seconds * 1e3, "ms", None, peer=f"{zephon.name}, {chunk}", why=wrong)
        else:
            yield _compared(restart, seconds * 1e3, "ms", zephon, text, ratio)


def _bytes(state: str) -> int:
    """Return the bytes of a state without the description of the pipeline, which all of them share."""
    document = json.loads(state)
    del document["pipeline"]
    return len(json.dumps(document))


def _ranks(ours: _Ours, zephon: Away, shards: str) -> Row:
    """Count the steps that two ranks deliver as one does; ours are those of a stream without end."""
    name, target = f"{_WHAT}: steps of 2 ranks that are those of 1", Target("at least", 100)
    steps = max(1, len(ours.mixed) // _READ)
    given: dict[str, Any] = {"epochs": None, "steps": steps, "prefetch": 0, "global_batch_size": 2 * _BATCH}
    alone = [_digests(batch) for batch in ours.loader(**given)]
    ranks = [ours.loader(**given, rank=rank, world_size=2) for rank in range(2)]
    together = [sorted(itertools.chain(*map(_digests, parts))) for parts in zip(*ranks, strict=True)]
    same = sum(one == both for one, both in zip(alone, together, strict=True))
    if zephon.absent is not None:
        return missing(name, 100 * same / steps, "%", target, peer=zephon.name, why=zephon.absent)
    theirs, of = zephon.ask("asked", call="ranks", shards=shards, chunk=_CHUNKS["chunks of 256"])
    against = f"of {steps:,}; {zephon.name}, chunks of 256: {theirs:,} of {of:,}"
    return absolute(name, 100 * same / steps, "%", target, against=against)


def _digests(batch: Sequence[Any]) -> list[bytes]:
    return sorted(each["tokens"].tobytes() for each in batch)


def _records(ours: _Ours, zephon: Away, shards: str, *, rounds: int) -> Iterator[Row]:
    """Measure the documents alone, without filter and packing: in their order, and one by its number."""
    mixed = ours.mixed
    count = len(mixed)
    places = np.random.default_rng(0).integers(0, count, min(_SINGLE, count)).tolist()
    contestants: dict[str, Timed] = {
        "ours": Contestant(lambda: _read(mixed), count=count),
        "single": Contestant(lambda: [mixed[place] for place in places], count=len(places)),
    }
    shuffles = {"within files": False, "as a whole": True}
    if zephon.absent is None:
        for shuffle, whole in shuffles.items():
            contestants[shuffle] = _Asked(zephon, "records", count, {"shards": shards, "whole": whole})
    times = race(contestants, rounds=rounds)
    for shuffle in shuffles:
        there = shuffle in contestants
        text = f"shuffled {shuffle} {shown(times.median(shuffle) * 1e6)}" if there else ""
        ratio = times.ratio(shuffle, "ours") if there else 0.0
        name = f"2 sources mixed, {shards} files, shuffled as a whole: a document"
        yield _compared(name, times.median("ours") * 1e6, "us", zephon, text, ratio)
    name = f"2 sources mixed, {shards} files: any document by its number"
    against = f"in order {shown(times.median('ours') * 1e6)}"
    ratio = times.ratio("single", "ours")
    yield relative(name, times.median("single") * 1e6, "us", None, against=against, ratio=ratio)


def _read(mixed: sk.Dataset) -> None:
    with sk.Loader(mixed, batch_size=_READ, collate=list) as loader:
        collections.deque(loader, maxlen=0)


def _compared(
    name: str, value: float, unit: str, zephon: Away, text: str, ratio: float, *, least: float = 3
) -> Row:
    target = Target("at least", least)
    if zephon.absent is not None:
        return missing(name, value, unit, target, peer=zephon.name, why=zephon.absent)
    return relative(name, value, unit, target, against=f"{zephon.name}, {text}", ratio=ratio)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)
