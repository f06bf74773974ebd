"""Rows of Parquet files: one at random, in batches, and in a windowed epoch, against what others read.

Nothing is kept decoded between single rows, neither of ours nor of the opponents': each is read anew.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.data import linked, parquet_copies, parquet_many
from benchmarks.measure import Contestant, Row, Target, absolute, missing, race, relative
from benchmarks.pages import Floor

import seekable as sk
from seekable.nodes.columns.decode_column import DECODED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow.parquet as pq
    from benchmarks.data import Data
    from benchmarks.measure import Race

_SINGLE, _BATCHES, _BATCH = 24, 4, 256
_WINDOW = 8
_ROUNDS = 5

PEER = "indexed-parquet-dataset 0.4.4"


def rows(data: Data) -> Iterator[Row]:
    """Measure single rows, batches, epochs and opening."""
    for name, path in parquet_copies(data).items():
        yield from _single(name, path)
    # With few large groups a batch wants nearly all pages, and everybody decodes everything.
    for name, copies in (("large groups, snappy", 32), ("small groups, zstd", 1)):
        yield from _batched(name, parquet_copies(data)[name], copies=copies)
    yield from _epochs(parquet_copies(data)["large groups, snappy"])
    yield _opening(data)


def _single(name: str, path: str) -> Iterator[Row]:
    dataset, one = sk.open(path), sk.open(path, columns=["id"])
    order = np.random.default_rng(2).permutation(len(dataset))[:_SINGLE].tolist()
    peers, floor = _peers(path), Floor.of(path)
    jobs: dict[str, Callable[[], object]] = {
        "ours": partial(_each, dataset, order),
        "one column": partial(_each, one, order),
        "floor": partial(floor.rows, order),
        **{peer: partial(_each, peers[peer], order) for peer in peers},
    }
    contestants = {key: Contestant(job, count=len(order)) for key, job in jobs.items()}
    times = race(contestants, rounds=_ROUNDS)
    if name.startswith("large"):
        wanted = {PEER: 25.0, "pyarrow read_row_group": 8.0}
        yield _over(f"one row of 4 columns, {name}", times, "floor", Target("at most", 2), "pages decoded")
        figure = 1e3 * times.median("one column")
        yield absolute(f"one row of a number, {name}", figure, "ms", Target("at most", 0.4))
    else:
        wanted = {"polars slice": 1.0}
    for peer in (PEER, "pyarrow read_row_group", "polars slice", "duckdb file_row_number"):
        target = Target("at least", wanted[peer]) if peer in wanted else None
        what = f"one row of 4 columns, {name}"
        if peer in times.seconds:
            yield _faster(what, times, peer, target)
        else:
            yield missing(what, 1e3 * times.median("ours"), "ms", target, peer=peer)


def _batched(name: str, path: str, *, copies: int) -> Iterator[Row]:
    path = linked(path, copies)
    dataset = sk.open(os.path.dirname(path))
    count = 1 if copies > 1 else _BATCHES
    order = np.random.default_rng(3).permutation(len(dataset))[: count * _BATCH].reshape(count, _BATCH)
    batches = order.tolist()
    peer = _peers(path).get(PEER)
    jobs: dict[str, Callable[[], object]] = {"ours": partial(_each, dataset, batches)}
    if peer is not None:
        jobs[PEER] = lambda: [peer.batch(batch) for batch in batches]
    times = race(
        {key: Contestant(job, count=order.size, prepare=DECODED.forget) for key, job in jobs.items()},
        rounds=1 if copies > 1 else 3,
    )
    what, target = (
        f"random rows, {_BATCH} at a time, {name}",
        Target("at least", 20 if "large" in name else 2),
    )
    if peer is None:
        yield missing(what, 1e3 * times.median("ours"), "ms", target, peer=PEER)
    else:
        yield _faster(what, times, PEER, target)


def _epochs(path: str) -> Iterator[Row]:
    import pyarrow.parquet as pq

    python, arrow = sk.open(path), sk.open(path, decode="arrow")
    half = len(python) // 2
    in_python = python.take(half).shuffle(seed=1, window=_WINDOW)
    in_arrow = arrow.take(half).shuffle(seed=1, window=_WINDOW)
    file = pq.ParquetFile(path)
    jobs: dict[str, Callable[[], object]] = {
        "dicts": lambda: _through(in_python.batches("python", size=_BATCH)),
        "to_pylist": lambda: [batch.to_pylist() for batch in file.iter_batches(row_groups=[0])][:0],
        "arrow": lambda: _through(in_arrow.batches("arrow", size=_BATCH)),
        "iter_batches": lambda: _through(file.iter_batches(row_groups=[0])),
    }
    contestants = {key: Contestant(job, count=half, prepare=DECODED.forget) for key, job in jobs.items()}
    times = race(contestants, rounds=3)
    for ours, theirs, bound in (("dicts", "to_pylist", 0.7), ("arrow", "iter_batches", 0.75)):
        yield relative(
            f"epoch, window={_WINDOW}, {ours}",
            1 / times.median(ours),
            "records/s",
            Target("at least", bound),
            against=f"pyarrow {theirs} {1 / times.median(theirs):,.0f}",
            ratio=times.ratio(theirs, ours),
        )


def _opening(data: Data) -> Row:
    from benchmarks.opening import opened

    files = 10_000
    folder = parquet_many(data, files=files)
    assert len(sk.open(folder)) == files
    figures = sorted(opened(folder)["ms"] for _ in range(_ROUNDS))
    name = f"open {files:,} Parquet files with an index"
    return absolute(name, figures[_ROUNDS // 2] / 1e3, "s", Target("at most", 1))


def _over(name: str, times: Race, other: str, target: Target, said: str) -> Row:
    against = f"{said} {1e3 * times.median(other):.3g}"
    return relative(
        name, 1e3 * times.median("ours"), "ms", target, against=against, ratio=times.ratio("ours", other)
    )


def _faster(name: str, times: Race, peer: str, target: Target | None) -> Row:
    against = f"{peer} {1e3 * times.median(peer):.3g}"
    return relative(
        name, 1e3 * times.median("ours"), "ms", target, against=against, ratio=times.ratio(peer, "ours")
    )


def _each(records: Any, asked: list[Any]) -> None:
    """Read rows, or batches of them, each as if it were the first."""
    for each in asked:
        DECODED.forget()
        records[each]


def _through(batches: Iterator[Any]) -> None:
    for _ in batches:
        pass


def _peers(path: str) -> dict[str, Any]:
    """Return the opponents that are installed, each giving a dict for ``peer[row]``."""
    found: dict[str, Any] = {"pyarrow read_row_group": _Arrow(path)}
    if importlib.util.find_spec("indexed_parquet_dataset"):
        found[PEER] = _Indexed(path)
    if importlib.util.find_spec("polars"):
        found["polars slice"] = _Polars(path)
    if importlib.util.find_spec("duckdb"):
        found["duckdb file_row_number"] = _Duck(path)
    return found


class _Arrow:
    def __init__(self, path: str) -> None:
        import pyarrow.parquet as pq

        self._file: pq.ParquetFile = pq.ParquetFile(path)
        self._rows = self._file.metadata.row_group(0).num_rows

    def __getitem__(self, row: int) -> Any:
        group, within = divmod(row, self._rows)
        return self._file.read_row_group(group).slice(within, 1).to_pylist()[0]


class _Indexed:
    def __init__(self, path: str) -> None:
        dataset = importlib.import_module("indexed_parquet_dataset").IndexedParquetDataset
        self._dataset = dataset.from_folder(os.path.dirname(path))

    def __getitem__(self, row: int) -> Any:
        self._dataset._rg_cache.clear()
        return self._dataset[row]

    def batch(self, rows: list[int]) -> Any:
        self._dataset._rg_cache.clear()
        return self._dataset.__getitems__(rows)


class _Polars:
    def __init__(self, path: str) -> None:
        polars = importlib.import_module("polars")
        self._scan = polars.scan_parquet(path)

    def __getitem__(self, row: int) -> Any:
        return self._scan.slice(row, 1).collect().to_dicts()[0]


class _Duck:
    def __init__(self, path: str) -> None:
        self._database = importlib.import_module("duckdb").connect()
        self._database.execute("set progress_bar_time = 1000000")
        self._query = f"select * from read_parquet('{path}', file_row_number=true) where file_row_number = "

    def __getitem__(self, row: int) -> Any:
        found = self._database.execute(f"{self._query}{row}")
        return dict(zip([column[0] for column in found.description], found.fetchone(), strict=True))
