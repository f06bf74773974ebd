"""Arrays in the compression of lilcom, as Lhotse stores features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._optional import optional

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

lilcom = optional("lilcom", extra="audio")

__all__ = ["lilcom_array"]

_FIRST_BYTE = b"L"


def lilcom_array(data: bytes | memoryview) -> NDArray[np.float32]:
    """Return the array of a payload that lilcom has compressed.

    Args:
        data: the payload, in memory.

    Returns:
        Float32, of the shape that was compressed.

    Raises:
        MissingDependency: lilcom is not installed.
        ValueError: the payload is cut off, or is not of lilcom.

    Example:
        >>> import lilcom
        >>> import numpy as np
        >>> lilcom_array(lilcom.compress(np.zeros((3, 2), np.float32))).shape
        (3, 2)
    """
    payload: Any = bytes(data)
    if payload[:1] != _FIRST_BYTE:
        message = (
            f"an array of lilcom begins with {_FIRST_BYTE!r} (got {payload[:12]!r}, {len(payload):,} bytes)"
        )
        raise ValueError(message)
    try:
        array: NDArray[np.float32] = lilcom.decompress(payload)
    except ValueError as error:
        message = f"lilcom cannot decompress this array: {error} ({len(payload):,} bytes)"
        raise ValueError(message) from None
    return array
