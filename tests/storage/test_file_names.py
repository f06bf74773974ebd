"""Braces in paths stand for what they do in shells and in WebDataset."""

from __future__ import annotations

import pytest

from seekable.errors import InvalidArgument
from seekable.storage.file_names import expanded, has_braces

braceexpand = pytest.importorskip("braceexpand")


@pytest.mark.parametrize(
    "text",
    [
        "a.tar",
        "train-{000..012}.tar",
        "{0..9}",
        "{08..10}",
        "{01..100..50}",
        "{3..1}",
        "{10..0..5}",
        "{0..10..3}",
        "{-2..2}",
        "{a..e}",
        "{e..a..2}",
        "{a,b}/x-{1..2}.tar",
        "x{,y}z",
        "{a,{b,c{1..2}}}d",
        "{}",
        "x{1}",
        "{{a,b}}",
        "{1..}",
        "{a..1}",
        "a,b{c,d}",
    ],
)
def test_braces_are_those_of_braceexpand(text: str) -> None:
    assert expanded(text) == list(braceexpand.braceexpand(text))


@pytest.mark.parametrize("text", ["{a,b", "a,b}{1..2}", "{a,{b}"])
def test_braces_that_are_not_closed_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="brace at character"):
        expanded(text)


@pytest.mark.parametrize("text", ["{0..99999999}", "{0..9999}{0..9999}"])
def test_too_many_paths_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="more than 10,000,000 paths"):
        expanded(text)


def test_braces_that_stand_for_themselves() -> None:
    assert not any(map(has_braces, ("{}", "x{1}", "a")))
    assert all(map(has_braces, ("{a,b}", "{1..2}")))
