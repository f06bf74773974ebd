"""Shares of rows for the tests of splits."""

from __future__ import annotations

from hypothesis import strategies as st

TENTHS = st.lists(st.integers(1, 10), min_size=1, max_size=5).map(
    lambda parts: [part / sum(parts) for part in parts]
)
