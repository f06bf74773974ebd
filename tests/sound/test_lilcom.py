"""Arrays of lilcom."""

from __future__ import annotations

import lilcom
import numpy as np
import pytest

from seekable.sound.lilcom import lilcom_array

ARRAY = np.random.default_rng(0).standard_normal((30, 8)).astype(np.float32)


def test_an_array_is_that_of_lilcom() -> None:
    data = lilcom.compress(ARRAY)
    for payload in (data, memoryview(data)):
        found = lilcom_array(payload)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, lilcom.decompress(data))


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"L", lilcom.compress(ARRAY)[:-1]])
def test_what_is_no_array_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="lilcom"):
        lilcom_array(data)
