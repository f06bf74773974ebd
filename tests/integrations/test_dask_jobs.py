"""An index and a filter on a cluster of Dask give the bytes that one process gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distributed import Client, LocalCluster
from tests.parallel.heavy_calls import CALLS, make_corpus

from seekable.index.build import file_parts as parts
from seekable.integrations.dask import DaskExecutor

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_cluster_gives_the_results_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_BATCH_BYTES", 1)
    corpus = make_corpus(tmp_path / "corpus")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
        DaskExecutor(client) as executor,
    ):
        for name in ("seekable.open", "Dataset.filter"):
            here, there = (tmp_path / f"{name}-{place}" for place in ("here", "there"))
            here.mkdir()
            there.mkdir()
            expected = CALLS[name](corpus, here, {"jobs": 1})
            assert CALLS[name](corpus, there, {"executor": executor}) == expected
