"""Every store passes the same tests: obstore over each server and in memory and on disk, and fsspec."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import fsspec  # type: ignore[import-untyped]
import pytest
from obstore.store import MemoryStore

from seekable.remote.mounts import mount, store_of
from seekable.remote.stores.fsspec_store import FsspecStore
from seekable.remote.stores.obstore_clients import Client
from seekable.remote.stores.obstore_store import ObstoreStore
from seekable.remote.stores.storage_options import StorageOptions
from seekable.storage.addresses import Address, parse
from seekable.testing import StoreTests

if TYPE_CHECKING:
    from tests.remote.servers.bucket import Bucket

    from seekable.remote.stores.object_store import Store

_numbers = itertools.count()


class TestMemory(StoreTests):
    @pytest.fixture(autouse=True)
    def _connect(self) -> None:
        self.client = Client(MemoryStore(), "none")

    def store(self) -> Store:
        return ObstoreStore(Address("memory", "x", ""), lambda: self.client, secrets=[])


class TestFsspec(StoreTests):
    @pytest.fixture(autouse=True)
    def _connect(self) -> None:
        self.options = StorageOptions({"file_system": fsspec.filesystem("memory")})
        self.mount = Address("memory", f"fsspec-{next(_numbers)}", "")

    def store(self) -> Store:
        return FsspecStore(self.mount, self.options)


class _ServerTests(StoreTests):
    server = ""

    @pytest.fixture(autouse=True)
    def _connect(self, request: pytest.FixtureRequest) -> None:
        self.bucket: Bucket = request.getfixturevalue(self.server).bucket()
        self.address = mount(self.bucket.url, self.bucket.options)
        key = parse(self.address).key
        self.folder = f"{key}/" if key else ""

    def store(self) -> Store:
        return store_of(self.address)[0]

    def write(self, key: str, content: bytes) -> None:
        self.bucket.upload({key.removeprefix(self.folder): content})


class TestMoto(_ServerTests):
    server = "moto"


class TestAzurite(_ServerTests):
    server = "azurite"


class TestGcs(_ServerTests):
    server = "fake_gcs"
    puts = False  # This server refuses writes of the XML API.


class TestNginx(_ServerTests):
    server = "nginx"
    puts = False
    lists = False
