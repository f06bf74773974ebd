"""Whatever stages are put together, the stream is what its model is, and resumes exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cloudpickle
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.stream import laws
from tests.stream.common import check_same, delivered
from tests.stream.graphs import streams
from tests.thrift import some

if TYPE_CHECKING:
    import seekable as sk

drawn = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@drawn
@given(streams(), st.data())
def test_a_stream_is_its_model_and_resumes_exactly(stream: sk.Stream, data: st.DataObject) -> None:
    event(type(stream).__name__)
    laws.check(stream, lambda least, most: data.draw(st.integers(least, most)))


@settings(drawn, max_examples=some(25, of=2))
@given(streams(depth=4))
def test_a_copy_is_the_same_stream(stream: sk.Stream) -> None:
    copy = cloudpickle.loads(cloudpickle.dumps(stream))
    assert copy.fingerprint == stream.fingerprint
    assert repr(copy) == repr(stream)
    assert copy.explain() == stream.explain()
    check_same(delivered(copy, 20), delivered(stream, 20))
