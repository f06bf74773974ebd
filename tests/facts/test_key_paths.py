"""Places within records: each address leads back to its value, and what is not there is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.viewer.facts.key_paths import child_place, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = st.text(alphabet="a.[]\\0\n", max_size=4) | st.just("[record]")
RECORDS = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.binary(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def values_within(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield each value of a record with its place, but the record itself."""
    pairs: Any = (
        enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    )
    for part, each in pairs:
        inner = child_place(place, part)
        yield inner, each
        yield from values_within(each, inner)


@given(RECORDS)
def test_places_lead_back_to_the_values(record: Any) -> None:
    found = list(values_within(record, ""))
    assert all(value_at(record, place) is value for place, value in found)
    assert len({place for place, _ in found}) == len(found)
    assert value_at(record, "[record]") is record


@given(st.text(alphabet="a.[]\\09", max_size=8))
def test_no_address_breaks_the_viewer(address: str) -> None:
    try:
        value_at({"a": [{"a": b"x"}], "": b"y"}, address)
    except (InvalidArgument, KeyNotFound):
        return
    assert address in {"\\0", "a", "a[0]", "a[0].a"}


@pytest.mark.parametrize(
    ("address", "error", "what"),
    [
        ("b", KeyNotFound, "there is no key 'b'"),
        ("a[2]", KeyNotFound, "there is no element 2"),
        ("a.b", KeyNotFound, "there is no key 'b'"),
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
        value_at({"a": [1, b"x"]}, address)
