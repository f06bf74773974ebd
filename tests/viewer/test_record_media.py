"""Bytes within records: each is found once, and its address leads back to it."""

from __future__ import annotations

import tarfile
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.errors import InvalidArgument, KeyNotFound, WrongType
from seekable.viewer.record_media import bytes_at, media_values

if TYPE_CHECKING:
    from pathlib import Path

KEYS = st.text(alphabet="a.[]\\0\n", max_size=4) | st.just("[record]")
RECORDS = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.binary(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def all_bytes(value: Any) -> list[bytes]:
    if isinstance(value, bytes):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [each for one in inner for each in all_bytes(one)]


@given(RECORDS)
def test_addresses_lead_back_to_the_bytes(record: Any) -> None:
    found = media_values(record)
    assert [bytes(bytes_at(record, value.address)) for value in found] == all_bytes(record)
    assert len({value.address for value in found}) == len(found)
    assert [value.size for value in found] == [len(each) for each in all_bytes(record)]


@given(st.text(alphabet="a.[]\\09", max_size=8))
def test_no_address_breaks_the_viewer(address: str) -> None:
    try:
        bytes_at({"a": [{"a": b"x"}], "": b"y"}, address)
    except (InvalidArgument, KeyNotFound, WrongType):
        return
    assert address in {"\\0", "a[0].a"}


def test_a_sample_of_a_tar_has_its_media(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, data in {"x.seg.png": b"\x89PNG\r\n\x1a\n", "x.bin": b"<svg>"}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, BytesIO(data))
    record = sk.open(str(tmp_path / "a.tar"), decode=None)[0]
    kinds = {value.type.name for value in media_values(record)}
    assert kinds == {"image/png", "application/octet-stream"}


def test_deep_and_long_records_are_bounded() -> None:
    deep: Any = b"x"
    for _ in range(5000):
        deep = [deep]
    assert media_values(deep) == []
    assert len(media_values([b"x"] * 1000)) == 200
    assert media_values([b"x"] * 3, most=0) == []


@pytest.mark.parametrize(
    ("address", "error", "what"),
    [
        ("b", KeyNotFound, "there is no key 'b'"),
        ("a[2]", KeyNotFound, "there is no element 2"),
        ("a.b", KeyNotFound, "there is no key 'b'"),
        ("a[0]", WrongType, "of type int; only bytes"),
        ("[record]", WrongType, "of type dict"),
        ("a[-1]", InvalidArgument, r"cannot be read from '\[-1\]' on"),
        (".a[1]", InvalidArgument, "cannot be read from"),
        ("a[01]", InvalidArgument, "cannot be read from"),
        ("a[1].", InvalidArgument, "cannot be read from"),
        ("", InvalidArgument, "cannot be read from"),
        ("a[x]", InvalidArgument, "cannot be read from"),
        ("a[" + "9" * 30 + "]", InvalidArgument, "cannot be read from"),
    ],
)
def test_what_is_not_there_is_named(address: str, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        bytes_at({"a": [1, b"x"]}, address)


def test_views_and_arrays_of_bytes_are_sent() -> None:
    record = {"view": memoryview(b"abcd"), "array": bytearray(b"ef")}
    assert [value.size for value in media_values(record)] == [4, 2]
    assert bytes(bytes_at(record, "array")) == b"ef"
