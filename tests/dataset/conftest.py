"""A Hub on this machine for the tests of data on the Hub, and the process that forks to read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cloudpickle
import pytest
from tests.hub import Repo, Warm, environment, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import ThreadingHTTPServer
    from pathlib import Path

    from tests.hub import Hub


@pytest.fixture(scope="module", autouse=True)
def _functions_by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send functions of a module of tests to other processes by value.

    Else each of these processes would import the module, and with it pytest and hypothesis: most of its time.
    """
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    with Warm() as warm:
        yield warm


@pytest.fixture
def served() -> Iterator[tuple[Hub, ThreadingHTTPServer]]:
    with serving() as (hub, server):
        hub.repos["me/web"] = Repo()
        yield hub, server


@pytest.fixture
def hub(served: tuple[Hub, ThreadingHTTPServer]) -> Hub:
    return served[0]


@pytest.fixture
def env(hub: Hub, tmp_path: Path) -> dict[str, str]:
    return environment(hub.endpoint, tmp_path)
