"""The hashes of keys, as key indexes hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["key_hash", "text_key_hashes"]

_DIGEST = xxhash.xxh3_64_intdigest


def key_hash(key: str | int) -> int:
    """Return the hash of a key: xxh3_64 of ``s`` and its UTF-8, or of ``i`` and its decimal digits.

    Example:
        >>> key_hash("1") == key_hash(1)
        False
    """
    if not isinstance(key, str):
        return xxhash.xxh3_64_intdigest(b"i%d" % key)
    try:
        return xxhash.xxh3_64_intdigest(f"s{key}".encode())
    except UnicodeEncodeError:
        return xxhash.xxh3_64_intdigest(b"s" + key.encode("utf-8", "surrogatepass"))


def text_key_hashes(keys: Sequence[bytes]) -> NDArray[np.uint64]:
    """Return the hashes of many keys that are the bytes of texts: uint64, each as of `key_hash`.

    Args:
        keys: the bytes of each key; where they are no UTF-8, the key is the text with surrogates that
            ``os.fsdecode`` makes of them.

    Example:
        >>> int(text_key_hashes([b"utt1"])[0]) == key_hash("utt1")
        True
    """
    try:
        b"\n".join(keys).decode()
    except UnicodeDecodeError:
        hashes = (key_hash(key.decode("utf-8", "surrogateescape")) for key in keys)
    else:
        hashes = (_DIGEST(b"s" + key) for key in keys)
    return np.fromiter(hashes, np.uint64, len(keys))
