from __future__ import annotations

import tempfile

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from seekable.index import digest
from seekable.index.digest import END_BYTES, ContentHasher, digest_text, head_tail_digest, offsets_digest


@given(st.lists(st.binary(max_size=20)), st.integers(1, 9))
def test_the_content_digest_is_that_of_the_pieces_digests(parts: list[bytes], piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest, "PIECE_BYTES", piece)
        hasher = ContentHasher()
        for part in parts:
            hasher.update(memoryview(part))
        data = b"".join(parts)
        pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
        digests = b"".join(xxhash.xxh3_64_intdigest(one).to_bytes(8, "little") for one in pieces)
        assert hasher.digest() == xxhash.xxh3_64_intdigest(digests)


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


def test_the_digest_of_offsets_is_that_of_the_numbers_and_the_end() -> None:
    numbers = np.array([0, 5, 9], "<u8")
    assert offsets_digest(numbers[:2], size=9) == xxhash.xxh3_64_intdigest(numbers.tobytes())
    assert offsets_digest(numbers[:0], size=9) == xxhash.xxh3_64_intdigest(numbers[2:].tobytes())


def test_digests_are_pinned() -> None:
    hasher = ContentHasher()
    hasher.update(memoryview(b"seekable"))
    assert digest_text(hasher.digest()) == "xxh3:7c1943f04f1e1d81"
    assert digest_text(offsets_digest(np.array([0, 3], np.uint64), size=7)) == "xxh3:e2cd2b00af4bb059"
