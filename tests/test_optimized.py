"""Under ``python -O`` tests must still be able to fail, and the commands of the Makefile find their tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.stream.common import check_same

ROOT = Path(__file__).parents[1]


def test_asserts_of_tests_hold_under_every_option_of_python() -> None:
    with pytest.raises(AssertionError):
        assert not check_same.__name__


def test_asserts_of_modules_beside_the_tests_hold_too() -> None:
    with pytest.raises(AssertionError):
        check_same([(0, 1)], [(0, 2)])


def test_the_makefile_names_files_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {name for name in re.findall(r"\btests/[\w/.]+", makefile) if not name.endswith("test_")}
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
