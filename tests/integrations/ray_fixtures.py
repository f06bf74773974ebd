"""One cluster of Ray for all tests of a process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from tests.integrations.ray_cluster import ENVIRONMENT, RayCluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def started_cluster() -> Iterator[RayCluster]:
    """A cluster that this process has joined; tests take `ray_cluster`."""
    import ray

    with pytest.MonkeyPatch.context() as patch, RayCluster() as cluster:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        ray.init(cluster.address, logging_level=logging.WARNING, log_to_driver=False)
        yield cluster
        ray.shutdown()


@pytest.fixture
def ray_cluster(started_cluster: RayCluster) -> RayCluster:
    """A cluster of two nodes with one processor each, which this process has joined.

    It is the same one for all tests. A test may add and kill nodes: the next one finds two.
    """
    started_cluster.restore()
    return started_cluster
