"""Servers of objects, one of a kind for all tests of a process, and a bucket for each test.

A test names a server by its fixture (`moto`, `nginx`, `fake_gcs`, `azurite`), or takes `bucket`, which is
moto's. Those with the parameter `store` run once for each kind of server. What is not there is
skipped, with the line that installs it. Uploads do not use obstore: a test may still fork after them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest
from tests.remote.proxy import Proxies
from tests.remote.servers import azurite as azurite_module
from tests.remote.servers import gcs as gcs_module
from tests.remote.servers import nginx as nginx_module
from tests.remote.servers.bucket import StoreServer
from tests.remote.servers.s3 import Moto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.remote.proxy import Front
    from tests.remote.servers.bucket import Bucket

S = TypeVar("S", bound=StoreServer)

SERVERS = ("moto", "fake_gcs", "azurite", "nginx")
WRITABLE = ("moto", "fake_gcs", "azurite")


@pytest.fixture(scope="session", autouse=True)
def remote_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what is fetched out of the user's cache folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path_factory.mktemp("remote")))
        yield


@pytest.fixture(scope="session")
def moto() -> Iterator[Moto]:
    """S3, with lists, conditions and versions."""
    yield from _running(Moto())


@pytest.fixture(scope="session")
def nginx() -> Iterator[nginx_module.Nginx]:
    """HTTP; its `s3_bucket()` is S3 for reads alone."""
    if nginx_module.program() is None:
        pytest.skip(nginx_module.MISSING)
    yield from _running(nginx_module.Nginx())


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[gcs_module.FakeGcs]:
    """Google Cloud Storage, which ignores If-Match."""
    if gcs_module.program() is None:
        pytest.skip(gcs_module.MISSING)
    yield from _running(gcs_module.FakeGcs())


@pytest.fixture(scope="session")
def azurite() -> Iterator[azurite_module.Azurite]:
    """Azure Blob Storage."""
    if azurite_module.program() is None:
        pytest.skip(azurite_module.MISSING)
    yield from _running(azurite_module.Azurite())


@pytest.fixture
def bucket(moto: Moto) -> Bucket:
    """An empty bucket of S3, for one test."""
    return moto.bucket()


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Bucket:
    """An empty bucket of the server whose fixture the parameter names."""
    server: StoreServer = request.getfixturevalue(request.param)
    return server.bucket()


@pytest.fixture(scope="session")
def proxies() -> Iterator[Proxies]:
    """The process of the fault proxy."""
    with Proxies() as running:
        yield running


@pytest.fixture
def front(proxies: Proxies, nginx: nginx_module.Nginx) -> Iterator[Front]:
    """A port with faults before nginx, for one test."""
    made = proxies.before(nginx.address)
    yield made
    made.shut()


def _running(server: S) -> Iterator[S]:
    yield server
    server.stop()
