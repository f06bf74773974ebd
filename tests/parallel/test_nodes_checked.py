"""Each heavy call checks, before it begins, that the nodes of a cluster see the files that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.parallel.executors import Inline
from tests.parallel.heavy_calls import CALLS, make_corpus

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.errors import DataNotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class OfCluster(Inline):
    """An executor of a cluster with one node, on which each file has another time."""

    most = 4

    def __init__(self) -> None:
        self.requests = 0
        self.paths: list[str] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **given: Any) -> Any:
        self.requests += 1
        return super().submit(function, *arguments, **given)

    def shared(self, data: bytes) -> Callable[[], bytes]:
        return lambda: data

    def on_each_node(self, function: Callable[..., Any], *args: Any) -> dict[str, Any]:
        self.paths += args[0]
        sight = function(*args)
        return {"node-7": type(sight)(sight.software, dict.fromkeys(sight.files, "nothing"), sight.mark)}


@pytest.mark.parametrize("name", CALLS)
def test_no_work_begins_where_a_node_sees_other_files(name: str, tmp_path: Path) -> None:
    corpus, executor = make_corpus(tmp_path / "corpus"), OfCluster()
    if name != "seekable.open":
        sk.open(corpus)
    (tmp_path / "out").mkdir()
    with pytest.raises(DataNotFound, match=r"on node-7.*Nothing was begun"):
        CALLS[name](corpus, tmp_path / "out", {"executor": executor})
    assert not executor.requests
    assert str(corpus / "part-0.jsonl") in executor.paths
    assert str(corpus / "part-2.jsonl") in executor.paths
    made = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert made <= {"kept.u64.lock", "rows.u64.lock", "order.u64.lock"}


def test_indexes_and_kept_rows_are_compared_too(tmp_path: Path) -> None:
    corpus, executor = make_corpus(tmp_path / "corpus"), OfCluster()
    chosen = sk.open(corpus).filter(lambda record: record["n"] > 3, jobs=1)
    with pytest.raises(DataNotFound) as caught:
        chosen.sort("n", executor=executor)
    assert str(corpus / ".seekable" / "catalog.json") in executor.paths
    assert any("seekable-kept-" in path for path in executor.paths)
    assert any("save=" in note for note in caught.value.__notes__)
    executor.paths.clear()
    with pytest.raises(DataNotFound):
        verify(corpus, deep=True, executor=executor)
    assert str(corpus / ".seekable" / "catalog.json") in executor.paths
