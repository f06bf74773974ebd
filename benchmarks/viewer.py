"""The viewer on many small records: from the command to the first page, each page, and the memory of it all.

The real command serves; one client asks, with one connection, each time for another place. Pages that sample
or scan are measured without the server, as the facts that they show.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from benchmarks import view_data
from benchmarks.data import as_installed
from benchmarks.measure import Target, absolute

import seekable as sk
from seekable.viewer.facts.key_statistics import statistics as statistics_of
from seekable.viewer.facts.lengths import length_histogram
from seekable.viewer.facts.odd import odd, usual
from seekable.viewer.facts.search import Searched, search_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from benchmarks.data import Data
    from benchmarks.measure import Row

_ROUNDS = 15
_BATCH, _RANKS = 1024, 64
_DRAWS = 2 * 10**9
_FAR = 10**6
_ABSENT = "qzxv"
_BESIDE = 100
_MANY = 30

_RUN = f"""
import sys
import seekable as sk

FOLDER = sys.argv[0]

def loader(dataset):
    return sk.Loader(dataset, global_batch_size={_BATCH}, rank=0, world_size={_RANKS}, prefetch=0)

def train():
    web, code = (sk.open("corpus").shuffle(seed=seed) for seed in (1, 2))
    weights = [(0, {{"web": 7, "code": 3}}), (5 * 10**8, {{"web": 1, "code": 1}})]
    return loader(sk.mix({{"web": web, "code": code}}, weights=weights, seed=0))

def of(count):
    sources = {{f"s{{n}}": sk.from_sequence(range(10**9), version=n).shuffle(seed=n) for n in range(count)}}
    return loader(sk.mix(sources, weights={{f"s{{n}}": 1 + n % 7 for n in range(count)}}, seed=0))

def of2(): return of(2)
def of20(): return of(20)
def of500(): return of(500)
"""


@dataclass(frozen=True, slots=True)
class Client:
    """One connection to a viewer."""

    process: int
    connection: http.client.HTTPConnection
    token: str
    began: float
    """Seconds from the start of the command to the line that says where it listens."""

    def get(self, address: str) -> tuple[float, bytes]:
        """Return the seconds of a request, and the page.

        Raises:
            RuntimeError: the page is an error.
        """
        began = time.perf_counter()
        self.connection.request("GET", f"/{self.token}/{address}")
        answer = self.connection.getresponse()
        page = answer.read()
        seconds = time.perf_counter() - began
        if answer.status != http.client.OK:
            message = f"{address}: {answer.status} {page[-500:]!r}"
            raise RuntimeError(message)
        return seconds, page

    def start(self, address: str) -> str:
        """Start a job; return the address that shows it."""
        self.connection.request("POST", f"/{self.token}/{address}")
        answer = self.connection.getresponse()
        answer.read()
        return str(answer.headers["Location"]).rpartition("?")[2]

    def private_megabytes(self) -> float:
        """Return the memory of the server that is not of files."""
        with open(f"/proc/{self.process}/status", encoding="ascii") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["RssAnon"].split()[0]) / 1024


def rows(data: Data) -> Iterator[Row]:
    """Measure the viewer over as many rows as the data of the row ``opened`` has."""
    files, count = data.sizes.opened[0]
    folder = os.path.join(data.folder, f"viewed-{files}-{count}")
    _make(folder, files, count)
    corpus = sk.open(
        os.path.join(folder, "corpus"), storage=sk.Storage(max_open_files=1024)
    )  # As the command has it.
    environment = as_installed(data)
    with _client(folder, ("of2", "of20", "of500"), environment) as client:
        yield from _mixtures(client)
        if os.path.isdir("/proc/self"):
            after = client.private_megabytes()
            yield absolute("viewer: private memory with 10^9 rows", after, "MB", Target("at most", 200))
    with _client(folder, ("train",), environment) as client:
        yield absolute("viewer: the command, to listening", client.began, "s", Target("at most", 0.8))
        seconds, _ = client.get("")
        yield absolute("viewer: first page", 1e3 * seconds, "ms", Target("at most", 100))
        if os.path.isdir("/proc/self"):
            start = client.private_megabytes()
            yield absolute("viewer: private memory at the start", start, "MB", Target("at most", 60))
        yield from _pages(client, count)
        yield from _beside_a_search(client, count)
        if os.path.isdir("/proc/self"):
            after = client.private_megabytes()
            yield absolute("viewer: private memory after all of this", after, "MB", Target("at most", 150))
    if os.path.isdir("/proc/self"):
        yield _of_many(folder, environment)
    yield from _facts(corpus, sk.open(data.long))


def _of_many(folder: str, environment: Mapping[str, str]) -> Row:
    """Measure the memory of many datasets that are open at once, after each was looked at."""
    names = [f"part{number:02}" for number in range(_MANY)]
    parts = [f"{name}=corpus/part-{at:05}.jsonl" for at, name in enumerate(names)]
    with _client(folder, (), environment, parts) as client:
        for name in names:
            for page in ("", "rows", "stats", "row/17", f"search?q={_ABSENT}"):
                client.get(f"d/{name}/{page}")
        after = client.private_megabytes()
    return absolute(f"viewer: private memory with {_MANY} datasets", after, "MB", Target("at most", 150))


def _pages(client: Client, count: int) -> Iterator[Row]:
    places = np.random.default_rng(0).integers(0, count - 50, _ROUNDS).tolist()
    at_once = _each(client, (f"d/corpus/rows?at={place}" for place in places))
    yield _median("50 rows anywhere", at_once, 10)
    largest = max(len(page) for _, page in at_once)
    yield absolute("viewer: the largest page of 50 rows", largest / 1e3, "kB", Target("at most", 60))
    yield _median("any row, with when it comes", _each(client, (f"d/corpus/row/{n}" for n in places)), 10)
    steps = range(_FAR, _FAR + _ROUNDS)
    whole = _each(client, (f"p/train/step/{step}" for step in steps))
    yield _median(f"step near 10^6, {_BATCH:,} records of {_RANKS} ranks", whole, 60)
    one = _each(client, (f"p/train/step/{step}?rank=3" for step in steps))
    yield _median("that of one rank", one, 30)
    yield _median(
        "records ranked by oddness", _each(client, (f"p/train/step/{s}?by=odd" for s in steps)), 210
    )
    yield _median("when a row comes, 5 epochs", _each(client, (_when(n) for n in places)), 10)
    seconds, _ = client.get("d/corpus/padding")
    yield absolute(
        "viewer: padding by batch and order, first time", 1e3 * seconds, "ms", Target("at most", 300)
    )


def _beside_a_search(client: Client, count: int) -> Iterator[Row]:
    """Measure rows while all records are searched for a text that none has."""
    job = client.start(f"d/corpus/search-all?q={_ABSENT}")
    places = np.random.default_rng(1).integers(0, count, _BESIDE).tolist()
    times = [client.get(f"d/corpus/row/{place}")[0] for place in places]
    still = json.loads(client.get(f"d/corpus/search?{job}&as=json")[1])["job"]["state"]
    slowest = 1e3 * float(np.percentile(times, 95))
    name = f"viewer: a row while a search runs, the 95th percentile of {_BESIDE}"
    yield absolute(name, slowest, "ms", Target("at most", 50), against=f"the search was {still} behind them")


def _mixtures(client: Client) -> Iterator[Row]:
    for sources, most in ((2, 20), (20, 60), (500, 1000)):
        stops = (_DRAWS // _BATCH + turn for turn in range(5))
        drawn = _each(client, (f"p/of{sources}/mixture.svg?to={stop}" for stop in stops))
        yield _median(f"mixture of {sources} sources over 2 x 10^9 draws", drawn, most)


def _facts(corpus: sk.Dataset, long: sk.Dataset) -> Iterator[Row]:
    count = corpus._node.size or 0
    seconds = _seconds(length_histogram(corpus._node))
    yield absolute(f"viewer: lengths of {count:,} rows", seconds, "s", Target("at most", 0.4))
    for sample, most in ((1_000, 30), (10_000, 150), (100_000, 1_000)):
        taken = statistics.median(_seconds(statistics_of(corpus._node, n=sample)) for _ in range(3))
        name = f"viewer: statistics of {sample:,} rows"
        yield absolute(name, 1e3 * taken, "ms", Target("at most", most))
    searched = search_all(corpus._node, Searched(_ABSENT))
    began = time.perf_counter()
    *_, found = searched
    rate = found.of / (time.perf_counter() - began) / 1e9
    yield absolute("viewer: search of everything", rate, "GB/s", Target("at least", 0.8))
    node, positions = long.shuffle(seed=1)._node, np.arange(_BATCH)
    among = usual(node, [0])
    taken = statistics.median(_seconds(odd(node, positions, among, steps=0)) for _ in range(5))
    yield absolute(
        f"viewer: oddness of {_BATCH:,} records of 2.3 kB", 1e3 * taken, "ms", Target("at most", 150)
    )


def _each(client: Client, addresses: Iterable[str]) -> list[tuple[float, bytes]]:
    """Return the time and the page of each address; the first one is for warming up."""
    return [client.get(address) for address in addresses][1:]


def _median(name: str, answers: list[tuple[float, bytes]], most: float) -> Row:
    milliseconds = 1e3 * statistics.median(seconds for seconds, _ in answers)
    return absolute(f"viewer: {name}", milliseconds, "ms", Target("at most", most))


def _when(row: int) -> str:
    return f"p/train/when?file=part-{row % 100:05}.jsonl&row={row % 1000}"


def _seconds(partial_results: Iterable[object]) -> float:
    """Return the seconds that a fact takes to its end."""
    began = time.perf_counter()
    for _ in partial_results:
        pass
    return time.perf_counter() - began


def _make(folder: str, files: int, count: int) -> None:
    """Write the corpus and the run, and index it, unless they are there."""
    if os.path.exists(os.path.join(folder, "bench_run.py")):
        return
    corpus = os.path.join(folder, "corpus")
    view_data.write(corpus, files=files, rows=count // files)
    sk.open(corpus)
    with open(os.path.join(folder, "bench_run.py"), "w", encoding="utf-8") as program:
        program.write(_RUN)


@contextlib.contextmanager
def _client(
    folder: str, names: Iterable[str], environment: Mapping[str, str], data: Iterable[str] = ("corpus",)
) -> Iterator[Client]:
    pipelines = [f"{name}=bench_run:{name}" for name in names]
    command = [sys.executable, "-m", "seekable", "view", *data, *pipelines]
    began = time.perf_counter()
    with subprocess.Popen(
        [*command, "--json", "--no-browser", "--port", "0"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            said = json.loads(server.stdout.readline())
            seconds = time.perf_counter() - began
            token = said["url"].rstrip("/").rpartition("/")[2]
            connection = http.client.HTTPConnection("127.0.0.1", said["port"])
            yield Client(server.pid, connection, token, seconds)
        finally:
            server.terminate()
