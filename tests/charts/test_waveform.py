"""The picture of an outline: well-formed, inside its frame, and the same for the same numbers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.viewer.charts import waveform_svg

LEVELS = st.floats(-3, 3, width=32)


@given(st.lists(st.tuples(LEVELS, LEVELS), max_size=30), st.floats(0, 10_000))
def test_the_shape_lies_inside_the_frame(pairs: list[tuple[float, float]], seconds: float) -> None:
    low, high = [min(pair) for pair in pairs], [max(pair) for pair in pairs]
    picture = waveform_svg(low, high, seconds=seconds, title="<a> & b")
    root = ET.fromstring(picture)
    assert root.findtext("{*}title") == "<a> & b"
    (shape,) = [path.get("d", "") for path in root.findall(".//{*}path") if path.get("class") == "wave"]
    points = re.findall(r"([\d.e+-]+) ([\d.e+-]+)h", shape)
    assert len(points) == 2 * len(pairs)
    assert all(0 <= float(x) <= 640.5 and 0 <= float(y) <= 72 for x, y in points)


def test_louder_is_higher() -> None:
    def tops(high: list[float]) -> list[float]:
        picture = waveform_svg([0.0] * len(high), high, seconds=1, title="t")
        shape = picture.partition('class="wave" d="M')[2]
        return [float(point.split(" ")[1].partition("h")[0]) for point in shape.split("L")[: len(high)]]

    first, second, third, cut = tops([0.1, 0.5, 1.0, 7.0])
    assert first > second > third == cut


@pytest.mark.parametrize(("theme", "media"), [("auto", True), ("light", False), ("dark", False)])
def test_a_theme_that_is_given_does_not_follow_the_system(theme: str, media: bool) -> None:  # noqa: FBT001
    picture = waveform_svg([-1], [1], seconds=1, title="t", theme=theme)  # type: ignore[arg-type]
    assert ("prefers-color-scheme" in picture) is media


def test_four_hundred_parts_are_a_small_picture() -> None:
    wave = np.sin(np.arange(400)).tolist()
    assert len(waveform_svg([-abs(v) for v in wave], wave, seconds=9, title="t")) < 20_000
