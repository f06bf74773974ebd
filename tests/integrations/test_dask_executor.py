"""`DaskExecutor` on a cluster of two processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import dask
import pytest
from distributed import Client, LocalCluster

from seekable.errors import InvalidArgument
from seekable.integrations.dask import DaskExecutor
from seekable.testing import ExecutorTests

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two workers; a task is made again once if its worker died.

    Another port than Dask's own, which another cluster of this machine may have.
    """
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster, set_as_default=False) as client:
        yield client


class TestDask(ExecutorTests):
    retries = True
    client: Client

    @pytest.fixture(autouse=True)
    def _joined(self, client: Client) -> None:
        type(self).client = client

    def executor(self) -> DaskExecutor:
        return DaskExecutor(self.client)


def fail() -> None:
    message = "no such thing"
    raise LookupError(message)


def test_equal_calls_are_made_each(client: Client) -> None:
    with DaskExecutor(client) as executor:
        calls = [executor.submit(os.urandom, 8) for _ in range(20)]
        assert len({call.result() for call in calls}) == 20


def test_an_error_names_the_worker_and_the_stack(client: Client) -> None:
    with DaskExecutor(client) as executor:
        error = executor.submit(fail).exception()
    assert error is not None
    assert repr(error) == "LookupError('no such thing')"
    (note,) = error.__notes__
    assert "in fail" in note
    assert any(f" on {worker}:" in note for worker in client.nthreads())


def test_a_scheduler_is_joined_by_its_address(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-planted-secret")
    with DaskExecutor(cluster.scheduler_address, most=7) as executor:
        assert executor.submit(os.getenv, "AWS_SECRET_ACCESS_KEY").result() == "a-planted-secret"
        assert repr(executor) == f"DaskExecutor({cluster.scheduler_address!r}, most=7)"
        assert len(executor.on_each_node(os.getpid)) == 1
    with pytest.raises(InvalidArgument, match="most must be at least 1, got 0"):
        DaskExecutor(cluster.scheduler_address, most=0)


def test_an_address_without_a_scheduler_says_what_to_do() -> None:
    match = r"no scheduler of Dask answers at 'tcp://127\.0\.0\.1:1' .*: start one"
    with pytest.raises(OSError, match=match):
        DaskExecutor("tcp://127.0.0.1:1")
