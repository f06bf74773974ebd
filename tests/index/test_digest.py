from __future__ import annotations

import tempfile

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from seekable.index import digest
from seekable.index.digest import END_BYTES, PieceHasher, content_digest, digest_text, head_tail_digest


@given(st.lists(st.binary(max_size=20)), st.integers(1, 9))
def test_the_content_digest_is_that_of_the_pieces_digests(parts: list[bytes], piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest, "PIECE_BYTES", piece)
        hasher = PieceHasher()
        for part in parts:
            hasher.update(memoryview(part))
        data = b"".join(parts)
        pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
        digests = b"".join(xxhash.xxh3_64_intdigest(one).to_bytes(8, "little") for one in pieces)
        assert content_digest(hasher.digests()) == xxhash.xxh3_64_intdigest(digests)


@pytest.mark.parametrize("size", [0, 1, END_BYTES, END_BYTES + 1, 3 * END_BYTES])
def test_the_digest_of_the_ends_is_as_documented(size: int) -> None:
    data = bytes(np.arange(size, dtype=np.uint64).astype(np.uint8))
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        found = head_tail_digest(file.fileno(), size=size, head=data[:END_BYTES])
    assert found == xxhash.xxh3_64_intdigest(
        data[:END_BYTES] + data[-END_BYTES:] + size.to_bytes(8, "little")
    )


def test_digests_are_pinned() -> None:
    hasher = PieceHasher()
    hasher.update(memoryview(b"seekable"))
    assert digest_text(content_digest(hasher.digests())) == "xxh3:7c1943f04f1e1d81"
