"""Each call that takes ``jobs=`` takes ``executor=`` too, with equal results."""

from __future__ import annotations

import inspect
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest
from tests.parallel.heavy_calls import CALLS, make_corpus
from tests.thrift import sample

import seekable as sk
from seekable.dataset.verify_data import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def heavy() -> dict[str, Callable[..., object]]:
    """Return the public functions and methods with the argument ``jobs``, by name."""
    named = {
        f"{owner.__name__}.{name}": getattr(owner, name)
        for owner in (sk, sk.Dataset, sk.Stream)
        for name in dir(owner)
        if not name.startswith("_") and inspect.isroutine(getattr(owner, name))
    }
    return {name: call for name, call in named.items() if "jobs" in inspect.signature(call).parameters}


def test_each_call_with_jobs_takes_an_executor_and_is_in_the_table() -> None:
    found = heavy() | {"seekable.open": sk.Index, "verify": verify}
    without = [name for name, call in found.items() if "executor" not in inspect.signature(call).parameters]
    assert not without
    assert CALLS.keys() == found.keys()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("heavy") / "corpus")


@pytest.fixture(scope="module")
def pools() -> Iterator[dict[str, Executor]]:
    with (
        ThreadPoolExecutor(2) as threads,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes,
    ):
        yield {"threads": threads, "processes": processes}


IN_PROCESSES = sample(CALLS, of=3)


@pytest.mark.parametrize("name", CALLS)
def test_the_results_are_equal_in_threads_and_processes(
    name: str, corpus: Path, pools: dict[str, Executor], tmp_path: Path
) -> None:
    if name not in IN_PROCESSES:
        pools = {"threads": pools["threads"]}
    folders = [tmp_path / each for each in ("here", *pools)]
    for folder in folders:
        folder.mkdir()
    expected = CALLS[name](corpus, folders[0], {"jobs": 1})
    for folder, executor in zip(folders[1:], pools.values(), strict=True):
        assert CALLS[name](corpus, folder, {"executor": executor}) == expected
