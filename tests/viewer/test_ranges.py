"""Ranges of answers against a model that lists the bytes one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.errors import InvalidArgument, OutOfRange
from seekable.viewer.pages import media as room
from seekable.viewer.pages.media import LARGEST_ANSWER, range_of

PLACES = st.none() | st.integers(0, 25)


def model(first: int | None, last: int | None, size: int) -> list[int]:
    places = list(range(size))
    if first is None:
        return places[size - min(last or 0, size) :]
    return [place for place in places if place >= first and (last is None or place <= last)]


@given(PLACES, PLACES, st.integers(0, 20))
def test_a_range_has_the_bytes_that_it_names(first: int | None, last: int | None, size: int) -> None:
    written = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    if (first is None and last is None) or (first is not None and last is not None and first > last):
        assert not range_of(written, size).partial
        return
    expected = model(first, last, size)
    if not expected:
        with pytest.raises(OutOfRange, match="has no byte of the value"):
            range_of(written, size)
        return
    found = range_of(written, size)
    assert found.partial
    assert list(range(found.start, found.stop)) == expected
    assert found.content_range == f"bytes {expected[0]}-{expected[-1]}/{size}"


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "bytes", "bytes=", "bytes=-", "bytes=0-1,3-4", "items=0-1", "bytes=a-b", "bytes=1"),
        *("bytes=--1", "bytes=\u0660-\u0661", "bytes=0-1\n", "bytes=0x1-2", "bytes=1-0"),
        "bytes=" + "9" * 5000 + "-",
    ],
    ids=lambda header: str(header)[:20],
)
def test_what_is_no_single_range_is_ignored(header: str | None) -> None:
    found = range_of(header, 10)
    assert (found.start, found.stop, found.partial) == (0, 10, False)


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match="send the header 'Range: bytes=0-67108863'"):
        range_of(None, LARGEST_ANSWER + 1)
    assert range_of(None, LARGEST_ANSWER).stop == LARGEST_ANSWER
    monkeypatch.setattr(room, "LARGEST_ANSWER", 4)
    found = range_of("bytes=5-", 20)
    assert (found.start, found.stop, found.content_range) == (5, 9, "bytes 5-8/20")


def test_places_of_nineteen_digits_are_numbers() -> None:
    found = range_of(f"bytes=3-{10**19 - 1}", 10)
    assert (found.start, found.stop) == (3, 10)
    with pytest.raises(OutOfRange):
        range_of(f"bytes={10**18}-", 10)
