"""Each kind of chart is XML with a title and a description, whatever the names are."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from seekable.viewer.charts import (
    MOST_AREAS,
    MOST_BARS,
    THEMES,
    Frame,
    Sheet,
    areas,
    bars,
    histogram,
    lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.viewer.charts import Theme

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title><script>alert(1)</script>\x0b\x00\ud800&\u202e]]>" + "long" * 30
ROWS = np.array([[3.0, 1.0], [0.0, 0.0]])
DRAWN: dict[str, Callable[[str, Theme], str]] = {
    "areas": lambda name, theme: areas([name, "b"], [0, 5, 9], ROWS, ROWS, title=name, theme=theme),
    "bars": lambda name, theme: bars([name] * 40, [3] * 40, title=name, unit=name, theme=theme),
    "no bars": lambda name, theme: bars([], [], title=name, unit=name, theme=theme),
    "histogram": lambda name, theme: histogram([0, 1, 9], [1, 0], title=name, x_name=name, theme=theme),
    "lines": lambda name, theme: lines(np.arange(2), np.ones(2), title=name, x_name=name, theme=theme),
    "no lines": lambda name, theme: lines(np.arange(1), np.array([np.nan]), title=name, theme=theme),
}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", DRAWN)
def test_a_chart_is_xml_with_a_title_and_a_description(kind: str, theme: Theme) -> None:
    made = DRAWN[kind](HOSTILE, theme)
    root = ET.fromstring(made.encode())
    assert root.findtext(f"{SVG}title")
    assert root.findtext(f"{SVG}desc")
    assert not list(root.iter(f"{SVG}script"))
    assert DRAWN[kind](HOSTILE, theme) == made


@given(st.lists(st.integers(0, 10**15), max_size=MOST_BARS + 3))
def test_bars_are_as_long_as_their_values(values: list[int]) -> None:
    names = [f"name-{number}" for number in range(len(values))]
    root = ET.fromstring(bars(names, values, title="t", unit="bytes"))
    drawn = root.findall(f"{SVG}rect")[1:]
    lengths = [float(each.get("width", 0)) for each in drawn]
    shown = values[:MOST_BARS]
    assert len(lengths) == len(shown)
    full = 860 - 6 - 110 - min([float(each.get("x", 0)) for each in drawn], default=0)
    for value, length in zip(shown, lengths, strict=True):
        assert length == pytest.approx(max(full * value / max(1, *values), 0.5), abs=0.06)
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert [f"{value:,}" for value in shown] == texts[2::2][: len(shown)]
    assert (f"and {len(values) - MOST_BARS} others" in texts) == (len(values) > MOST_BARS)


def test_the_end_of_a_long_name_is_shown() -> None:
    texts = [each.text for each in ET.fromstring(bars(["a" * 99 + "end"], [1], title="", unit="")).iter()]
    assert f"…{'a' * 36}end" in texts


@pytest.mark.parametrize(("low", "high"), [(1, 10**9), (150, 420), (96, 99), (1, 2), (7, 90)])
def test_a_logarithmic_axis_has_some_ticks_within_its_ends(low: int, high: int) -> None:
    marks = Frame(860, 220, (low, 0), (high, 1), log=True)._x_ticks()
    assert 2 <= len(marks) <= 12
    assert all(low <= mark <= high for mark in marks)
    assert marks == sorted(marks)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=MOST_AREAS + 4))
def test_names_beside_areas_are_in_their_order_and_do_not_collide(shares: list[int]) -> None:
    row = np.array([shares], float)
    names = [f"name-{number}" for number in range(len(shares))]
    root = ET.fromstring(areas(names, [0, 10], row, row, title="delivered"))
    named = [
        each
        for each in root.iter(f"{SVG}text")
        if "name-" in str(each.text) or str(each.text).endswith(" others")
    ]
    heights = [float(each.get("y", 0)) for each in named]
    assert len(heights) == min(len(shares), MOST_AREAS)
    assert all(below - above >= 15 for below, above in itertools.pairwise(heights))
    assert 34 < heights[-1] <= heights[0] <= 260 - 34


def test_counts_have_whole_ticks() -> None:
    root = ET.fromstring(histogram([0, 1, 2], [1, 2], title="t", x_name="value"))
    assert {"0", "1", "2"} <= {str(each.text) for each in root.iter(f"{SVG}text")}
    assert not any(
        "." in str(each.text) for each in root.iter(f"{SVG}text") if each.get("text-anchor") == "end"
    )


@given(
    arrays(np.float64, st.tuples(st.integers(1, 30), st.just(2)), elements=st.floats(-900, 900)),
)
def test_a_curve_goes_through_its_points_to_a_tenth_of_a_pixel(points: np.ndarray[Any, Any]) -> None:
    sheet = Sheet("t", "d", width=9, height=9)
    sheet.curve(points)
    path = re.search(r'd="(M[^"]*)"', str(sheet))
    assert path is not None
    corners, at = [], np.zeros(2)
    for kind, numbers in re.findall(r"([Mlhv])([-\d. e]+)", path[1]):
        step = [float(number) for number in numbers.split()]
        at = at + np.array({"h": [*step, 0.0], "v": [0.0, *step]}.get(kind, step))
        corners.append(at)
    rounded = np.rint(points * 10) / 10
    moved = np.r_[True, (np.diff(rounded, axis=0) != 0).any(axis=1)]
    assert np.allclose(corners, rounded[moved], atol=1e-6)
