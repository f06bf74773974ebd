"""The pictures of the docs show what the library does now."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from docs.pictures.draw import HERE, PICTURES

PAGE = Path(HERE).parent / "pictures.md"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pictures that the script draws, as a person runs it, in another folder than the repository's."""
    folder = tmp_path_factory.mktemp("drawn")
    script = os.path.join(HERE, "draw.py")
    subprocess.run([sys.executable, script, str(folder)], cwd=folder, check=True, timeout=120)
    return folder


def test_the_script_draws_what_the_page_shows_and_nothing_else(drawn: Path) -> None:
    names = sorted(f"{name}.svg" for name in PICTURES)
    assert sorted(os.listdir(drawn)) == names
    assert sorted(path.name for path in Path(HERE).glob("*.svg")) == names
    shown = re.findall(r"!\[[^\]]{20,}\]\(pictures/([^)]*)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(shown) == names


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_library_does_now(name: str, drawn: Path) -> None:
    committed = (Path(HERE) / f"{name}.svg").read_bytes()
    assert committed == (drawn / f"{name}.svg").read_bytes(), "run docs/pictures/draw.py, and look at it"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_small_and_says_in_words_what_it_shows(name: str) -> None:
    text = (Path(HERE) / f"{name}.svg").read_text(encoding="utf-8")
    assert len(text) < 30_000
    root = ET.fromstring(text)
    labels = str(root.get("aria-labelledby")).split()
    said = [root.find(f"{SVG}{tag}") for tag in ("title", "desc")]
    assert [element.get("id") for element in said if element is not None] == labels
    assert all(element is not None and element.text and len(element.text) > 4 for element in said)
    assert root.get("role") == "img"
    assert "prefers-color-scheme:dark" in text
    assert "http" not in text.replace(SVG[1:-1], "")
