"""How many examples Hypothesis makes, by command; apart, so that no child of a test imports Hypothesis."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from tests.thrift import ALL

# The same examples on every run; other ones in `make fuzz`.
settings.register_profile("tests", settings.get_profile("ci"), max_examples=25 if ALL else 6)
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("SEEKABLE_FUZZ_EXAMPLES", "100")),
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
