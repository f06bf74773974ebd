"""Cases that tests of streams share; not for what workers import, because pytest takes longer than they."""

from __future__ import annotations

import pytest
from tests.stream.writing import FORMS

CHEAP_FORMS = [FORMS[0], *(pytest.param(form, marks=pytest.mark.exhaustive) for form in FORMS[1:])]
"""The forms of tests that start processes: each takes half a second to import what Parquet needs."""
