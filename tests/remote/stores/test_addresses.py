"""Addresses of objects: what is one, its parts, and what is kept out of its text."""

from __future__ import annotations

import os

import pytest

from seekable.errors import InvalidArgument
from seekable.storage.addresses import is_address, parse, secrets_of, shown

ADDRESSES = {
    "s3://bucket/corpus/a.jsonl": ("s3", "bucket", "corpus/a.jsonl"),
    "S3://bucket/A b#c%20?.jsonl": ("s3", "bucket", "A b#c%20?.jsonl"),
    "s3a://bucket": ("s3", "bucket", ""),
    "s3://bucket/": ("s3", "bucket", ""),
    "s3://bucket//a": ("s3", "bucket", "/a"),
    "gcs://bucket/a/": ("gs", "bucket", "a/"),
    "az://box/a": ("az", "box", "a"),
    "abfss://box@acc.dfs.core.windows.net/a": ("az", "box@acc", "a"),
    "https://acc.blob.core.windows.net/box/a%20b?sig=x": ("az", "box@acc", "a b"),
    "https://me:pw@Host.org:443/a%20b/c.jsonl?x=1#top": ("https", "host.org", "a%20b/c.jsonl"),
    "http://127.0.0.1:80": ("http", "127.0.0.1", ""),
    "http://[::1]:8080/a?b/c": ("http", "[::1]:8080", "a"),
    "http://host?x=1": ("http", "host", ""),
    "sftp://me:pw@host:22/home/a": ("sftp", "me@host:22", "home/a"),
    "memory://a/b": ("memory", "a", "b"),
    "memory:///a": ("memory", "", "a"),
}


@pytest.mark.parametrize("path", ADDRESSES)
def test_an_address_has_three_parts_and_its_text_is_the_same_address(path: str) -> None:
    assert is_address(path)
    found = parse(path)
    assert tuple(found) == ADDRESSES[path]
    assert parse(str(found)) == found
    assert parse(os.path.join(str(found), "x.y")).mount == found.mount


def test_paths_and_specs_are_no_addresses() -> None:
    for path in ("a.jsonl", "/a://b", "scp:s3://bucket/a.scp", "file:///a", "://a", "c:/a", "", "a b://c"):
        assert not is_address(path), path
        assert shown(path) == path


@pytest.mark.parametrize("path", ["s3://", "s3:///a", "gs://", "https:///a", "no/address"])
def test_an_address_without_a_bucket_or_host_is_refused(path: str) -> None:
    with pytest.raises(InvalidArgument, match=r"names no|is not an address"):
        parse(path)


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_password_before_a_bucket_is_refused_and_never_shown(scheme: str) -> None:
    path = f"{scheme}://me:PLANTED@bucket/a.jsonl"
    with pytest.raises(
        InvalidArgument, match=r"no user and no password before its bucket \(got ...@bucket\)"
    ):
        parse(path)
    assert shown(path) == f"{scheme}://bucket/a.jsonl"


def test_secrets_of_an_address_are_apart_from_it() -> None:
    assert secrets_of("https://me:p%40w@host/a?X-Amz-Signature=k") == ("me:p%40w", "X-Amz-Signature=k")
    assert secrets_of("sftp://me:pw@host/a") == ("me:pw", "")
    assert secrets_of("sftp://me@host/a?b") == ("", "")
    assert secrets_of("s3://bucket/a?.jsonl") == ("", "")
    for path in ("https://me:planted@host/a?sig=planted", "sftp://me:planted@host/a"):
        assert "planted" not in shown(path)
    assert shown("az://box@acc~0123abcd/a") == "az://box@acc/a"
