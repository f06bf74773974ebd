"""Credentials that have expired are asked for again, and none of them is in what we write or say."""

from __future__ import annotations

import json
import logging
import pickle
from typing import TYPE_CHECKING

import pytest
from tests.remote.acceptance.corpus import Corpus
from tests.remote.proxy import Fault

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.remote.proxy import Proxies
    from tests.remote.servers.s3 import Moto

SECRET = "PLANTED+secret/7f3a"


class Credentials:
    """Gives keys, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> dict[str, object]:
        self.asked += 1
        return {"access_key_id": "test", "secret_access_key": SECRET, "token": None, "expires_at": None}


def test_credentials_that_have_expired_are_asked_for_again(
    moto: Moto, proxies: Proxies, tmp_path: Path, forget: Callable[[], None]
) -> None:
    front = proxies.before(moto.address)
    corpus = Corpus.made(moto.bucket(), tmp_path).behind(front)
    credentials = Credentials()
    options = {name: corpus.bucket.options[name] for name in ("endpoint", "region")}
    dataset = sk.open(
        corpus.urls,
        index=sk.Index(folder=corpus.index_dir),
        storage=sk.Storage(options={**options, "credential_provider": credentials}),
    )
    assert dataset[0] == corpus.records[0]
    forget()
    front.rule(Fault(status=400, code="ExpiredToken"), target="^GET .*part-")
    asked = credentials.asked
    assert list(dataset) == list(corpus.records)
    assert credentials.asked > asked
    front.shut()


def test_a_secret_is_nowhere(
    moto: Moto,
    proxies: Proxies,
    tmp_path: Path,
    forget: Callable[[], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    front = proxies.before(moto.address)
    corpus = Corpus.made(moto.bucket(), tmp_path).behind(front)
    dataset = corpus.open(secret_access_key=SECRET, access_key_id="test").shuffle(seed=1)
    loader = sk.Loader(dataset, batch_size=4)
    next(iter(loader))
    said = [json.dumps(loader.state_dict()), str(dataset.explain()), repr(dataset), repr(loader)]
    said += [str(loader.report()), dataset.fingerprint]
    for fault in (Fault(status=403), Fault(status=404), Fault(status=412), Fault(etag='"other"')):
        forget()
        front.rule(fault, target="^GET .*part-", count=100)
        with pytest.raises(sk.SeekableError) as raised:
            list(corpus.open(secret_access_key=SECRET, access_key_id="test", retries=0))
        said += [str(raised.value), repr(raised.value.__cause__), repr(raised.value.__context__)]
        front.calm()
    sk.save_state(tmp_path / "state", loader)
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    written += [pickle.dumps(dataset)]
    assert written
    assert SECRET not in "\n".join([*said, caplog.text])
    assert not any(SECRET.encode() in content for content in written)
    front.shut()
