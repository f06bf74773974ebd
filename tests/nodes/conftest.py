"""Functions of the tests of nodes go to other processes by value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cloudpickle
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def _functions_by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send functions of a module of tests to other processes by value.

    Else each of these processes would import the module, and with it pytest and hypothesis: most of its time.
    """
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)
