"""A store of the tests, mounted for one test."""

from __future__ import annotations

import os
import re

import pytest
from tests.remote.index.counting_store import CountingStore

from seekable.remote import mounts
from seekable.remote.fetching import sending


@pytest.fixture
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CountingStore:
    """An empty store, in the place of the bucket of an address in this process."""
    name = re.sub("[^a-z0-9]", "-", request.node.name.lower())
    made = CountingStore(f"s3://{name}")
    monkeypatch.setitem(mounts._stores, (made.mount, os.getpid()), made)
    # Requests are counted: on a busy machine some would be late, and sent twice.
    monkeypatch.setattr(sending, "may_hedge", lambda *_, **__: False)
    return made
