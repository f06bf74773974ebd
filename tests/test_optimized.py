"""Under ``python -O`` tests must still be able to fail."""

from __future__ import annotations

import pytest
from tests.stream.common import check_same


def test_asserts_of_tests_hold_under_every_option_of_python() -> None:
    with pytest.raises(AssertionError):
        assert not check_same.__name__


def test_asserts_of_modules_beside_the_tests_hold_too() -> None:
    with pytest.raises(AssertionError):
        check_same([(0, 1)], [(0, 2)])
