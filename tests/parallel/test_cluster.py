"""Executors of clusters, and the check of their nodes. Here nodes are this process, seen in other ways."""

from __future__ import annotations

import os
import re
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from seekable.errors import DataNotFound, InvalidArgument, SeekableError
from seekable.order import permutation
from seekable.parallel import cluster
from seekable.parallel.cluster import ClusterExecutor, check_nodes, most_requests
from seekable.parallel.map_ranges import execution_options, map_ranges

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Spoil = Callable[[pytest.MonkeyPatch], object]


class Nodes(ThreadPoolExecutor):
    """A cluster whose nodes are this process; each is spoiled in its own way while it is called."""

    most = 3

    def __init__(self, **nodes: Spoil) -> None:
        super().__init__(2)
        self.nodes = nodes
        self.calls: list[Any] = []
        self.payloads: list[bytes] = []
        self.futures: list[Future[Any]] = []
        self.under_way = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        self.futures.append(super().submit(function, *args))
        self.under_way = max(self.under_way, sum(not future.done() for future in self.futures))
        return self.futures[-1]

    def shared(self, data: bytes) -> Callable[[], bytes]:
        self.payloads.append(data)
        return lambda: data

    def on_each_node(self, function: Callable[..., Any], *args: Any) -> dict[str, Any]:
        self.calls.append(args)
        return {name: self._call(spoil, function, args) for name, spoil in self.nodes.items()}

    def _call(self, spoil: Spoil, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            try:
                spoil(patch)
                return function(*args)
            except Exception as error:  # noqa: BLE001 - it is the answer of the node
                return error


def good(_: pytest.MonkeyPatch) -> None:
    """Leave the node as it is."""


def dead(_: pytest.MonkeyPatch) -> None:
    raise BrokenExecutor


def without_the_library(_: pytest.MonkeyPatch) -> None:
    message = "No module named 'seekable'"
    raise ModuleNotFoundError(message)


def of_another_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cluster, "__version__", "0.0.9")


def of_another_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(permutation, "permute_one", lambda *_: 7)


def without(path: Path) -> Spoil:
    """Return what hides a file from a node."""
    real = os.stat

    def stat(name: str, **given: Any) -> os.stat_result:
        if name == str(path):
            raise FileNotFoundError(2, "No such file or directory", name)
        return real(name, **given)

    return lambda patch: patch.setattr(os, "stat", stat)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    files = [tmp_path / folder / f"{number}.jsonl" for folder in "ab" for number in range(4)]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{file.name}\n")
    return files


def test_nodes_that_see_the_same_pass(files: list[Path]) -> None:
    nodes = Nodes(one=good, two=good)
    assert isinstance(nodes, ClusterExecutor)
    check_nodes(
        nodes, [*map(str, files), "s3://bucket/key.jsonl"], folder=str(files[0].parent / "new" / "er")
    )
    ((compared, mark),) = nodes.calls
    assert compared == [str(files[number]) for number in (0, 3, 4, 7)]
    assert os.path.dirname(mark) == str(files[0].parent)
    assert sorted(files[0].parent.iterdir()) == files[:4]


def test_a_folder_stands_for_its_first_and_last_file(files: list[Path]) -> None:
    nodes = Nodes(one=good)
    check_nodes(nodes, [str(files[0].parent), "gs://bucket/f/"], folder="s3://bucket/results")
    assert nodes.calls == [([str(files[0]), str(files[3])], None)]


def test_a_node_that_died_gets_no_work(files: list[Path]) -> None:
    check_nodes(Nodes(one=good, two=dead), map(str, files))


def test_a_pool_of_this_machine_is_not_asked(files: list[Path]) -> None:
    with ThreadPoolExecutor(1) as pool:
        check_nodes(pool, map(str, files))
    check_nodes(None, map(str, files))


@pytest.mark.parametrize(
    ("spoil", "expected", "found"),
    [
        (without_the_library, "an answer", "ModuleNotFoundError: No module named 'seekable'"),
        (of_another_version, "0.1.0", "0.0.9"),
        (of_another_order, r"\d+", "7"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_node_with_other_software_is_named(spoil: Spoil, expected: str, found: str) -> None:
    with pytest.raises(InvalidArgument, match=f"on two: expected {expected}, found {re.escape(found)}"):
        check_nodes(Nodes(one=good, two=spoil), [])


def test_a_node_without_a_file_is_named(files: list[Path]) -> None:
    nodes = Nodes(one=good, two=without(files[3]))
    with pytest.raises(DataNotFound) as caught:
        check_nodes(nodes, map(str, files))
    error = str(caught.value)
    assert f"'{files[3]}' on two: expected 8 bytes of the time" in error
    assert "found no such file (No such file or directory)" in error
    assert "on one" not in error


def test_a_node_with_another_file_is_named(files: list[Path]) -> None:
    def change(_: pytest.MonkeyPatch) -> None:
        files[0].write_text("another")

    with pytest.raises(DataNotFound, match=r"expected 8 bytes of .*, found 7 bytes of "):
        check_nodes(Nodes(one=change), map(str, files))


def test_a_node_with_another_folder_of_results_is_named(tmp_path: Path) -> None:
    def hide(_: pytest.MonkeyPatch) -> None:
        (mark,) = tmp_path.iterdir()
        mark.unlink()

    with pytest.raises(DataNotFound, match=r"the folder of results .* on one: .*, found another folder"):
        check_nodes(Nodes(one=hide), [], folder=str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_all_differences_are_one_error(files: list[Path]) -> None:
    spoiled = {f"node-{number}": without(files[0]) for number in range(8)}
    with pytest.raises(SeekableError, match=r"node-4.*; and 3 more\. Nothing was begun"):
        check_nodes(Nodes(**spoiled), map(str, files))


def test_an_executor_of_a_cluster_says_how_many_requests_it_takes() -> None:
    with Nodes() as nodes:
        assert most_requests(nodes, otherwise=64) == 3
        found = list(map_ranges(range, 1000, using=execution_options(None, nodes, at_once=True)))
    assert len(nodes.payloads) == 1
    assert nodes.under_way <= 3
    assert [number for _, some in found for number in some] == list(range(1000))
