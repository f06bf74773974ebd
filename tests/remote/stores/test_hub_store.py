"""The store of the Hub: the tests of every store, and its errors."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import huggingface_hub.constants
import pytest
from tests.hub import Repo, serving

from seekable.errors import AccessDenied, IndexStale, InvalidArgument, Unreachable
from seekable.remote.mounts import store_of
from seekable.remote.stores.fsspec_store import FsspecStore
from seekable.remote.stores.hub_store import HubStore
from seekable.remote.stores.object_store import Passing, Pin
from seekable.testing import StoreTests
from seekable.testing.stores import assert_fails, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hub import Hub

COMMIT = "01" * 20
KEY = f"me/web@{COMMIT}/data/a.jsonl"


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A Hub that huggingface_hub in this process takes for the one there is."""
    with serving() as (hub, _), pytest.MonkeyPatch.context() as patch:
        hub.repos["me/web"] = Repo(commits={COMMIT: {}})
        patch.setenv("HF_ENDPOINT", hub.endpoint)
        patch.delenv("HF_HUB_OFFLINE", raising=False)
        importlib.reload(huggingface_hub.constants)
        yield hub
    importlib.reload(huggingface_hub.constants)


class TestHub(StoreTests):
    puts = False
    folder = f"me/web@{COMMIT}/"

    @pytest.fixture(autouse=True)
    def _connect(self, hub: Hub) -> None:
        self.hub = hub

    def store(self) -> HubStore:
        return HubStore()

    def write(self, key: str, content: bytes) -> None:
        self.hub.repos["me/web"].commits[COMMIT][key.removeprefix(self.folder)] = content


@pytest.fixture
def stored(hub: Hub) -> Hub:
    hub.repos["me/web"].commits[COMMIT]["data/a.jsonl"] = bytes(range(100))
    return hub


def pinned() -> Pin:
    stat = run(HubStore().stat(KEY))
    return Pin(stat.size, stat.identity, stat.etag)


@pytest.mark.parametrize("fault", ["500", "cut", "short"])
def test_what_passes_may_be_sent_again(stored: Hub, fault: str) -> None:
    pin = pinned()
    stored.faults.append(fault)
    error = assert_fails(HubStore().read(KEY, 10, 20, pin=pin), Passing)
    assert len(stored.data) == 1
    assert "http" not in str(error)
    assert bytes(memoryview(run(HubStore().read(KEY, 10, 20, pin=pin)))) == bytes(range(10, 20))


def test_refusals_and_other_content_do_not_pass(stored: Hub) -> None:
    pin = pinned()
    stored.repos["me/web"].gated = True
    error = assert_fails(HubStore().read(KEY, 0, 9, pin=pin), AccessDenied)
    assert "ask for access on the page of the repository" in str(error)
    stored.repos["me/web"].gated = False
    stored.repos["me/web"].commits[COMMIT]["data/a.jsonl"] = bytes(100)
    error = assert_fails(HubStore().read(KEY, 0, 9, pin=pin), IndexStale)
    assert f"hf://datasets/{KEY} has another content than when the repository was listed" in str(error)
    assert repr(pin.etag) in str(error)


def test_a_hub_that_is_offline_or_gone(stored: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    pin = pinned()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    error = assert_fails(HubStore().read(KEY, 0, 9, pin=pin), Unreachable)
    assert f"bytes 0 to 9 of hf://datasets/{KEY} is not on this machine, and HF_HUB_OFFLINE is set" in str(
        error
    )
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    stored.elsewhere = "http://localhost:9/signed?key=secret"
    error = assert_fails(HubStore().read(KEY, 0, 9, pin=pin), Passing)
    assert "secret" not in str(error)


def test_a_commit_is_never_changed_and_other_addresses_have_another_store() -> None:
    store, key = store_of(f"hf://datasets/{KEY}")
    assert (type(store), key) == (HubStore, KEY)
    assert_fails(store.put(key, b"", replacing="any"), InvalidArgument)
    assert_fails(store.delete(key), InvalidArgument)
    assert_fails(store.stat("me/web/data/a.jsonl"), InvalidArgument)
    assert type(store_of("hf://datasets/me/web@main/data/a.jsonl")[0]) is FsspecStore
