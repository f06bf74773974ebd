"""Compressed files are what gzip and zstandard read, or an error: never a shorter content."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.compressing import SKIPPABLE, compressed, zst_frame

import seekable as sk
from seekable import kaldi
from seekable.errors import UnsupportedFormat
from seekable.formats.tar.field_decoders import field_decoder
from seekable.storage.compression import compression_of, inflated, uncompressed_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seekable.storage.compression import Compression

KINDS: list[Compression] = ["gz", "zst"]

parts = st.lists(
    st.binary(max_size=50) | st.sampled_from([b"abc" * 1000, bytes(5000)]), min_size=1, max_size=5
)
kinds = st.sampled_from(KINDS)


def read_by_others(data: bytes, kind: Compression) -> bytes:
    if kind == "gz":
        return gzip.decompress(data)
    reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
    return reader.read()


def read(data: bytes, kind: Compression, size: int = 1 << 20) -> bytes:
    return b"".join(inflated(cut(data, size), kind, "some file"))


def cut(data: bytes, size: int) -> Iterable[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@given(parts, kinds, st.integers(1, 100))
def test_content_is_what_others_read_however_the_file_is_read(
    contents: list[bytes], kind: Compression, size: int
) -> None:
    data = compressed(contents, kind)
    assert read(data, kind, size) == b"".join(contents) == read_by_others(data, kind)


@given(parts, kinds, st.integers(1, 100))
def test_members_and_frames_are_told_where_they_begin(
    contents: list[bytes], kind: Compression, size: int
) -> None:
    told: list[tuple[int, int]] = []
    data = compressed(contents, kind)
    for _ in inflated(cut(data, size), kind, "some file", on_part=lambda *at: told.append(at)):
        pass
    wanted, at, start = [], 0, 0
    for content in contents:
        wanted.append((at, start))
        at, start = at + len(compressed([content], kind)), start + len(content)
    assert told == wanted


@given(st.data(), kinds)
def test_what_is_cut_off_is_an_error_that_says_where(data: st.DataObject, kind: Compression) -> None:
    contents = data.draw(st.lists(st.binary(max_size=200), min_size=1, max_size=3))
    whole = compressed(contents, kind)
    ends = [len(compressed(contents[:count], kind)) for count in range(len(contents) + 1)]
    at = data.draw(st.integers(1, len(whole)))
    if at in ends:
        assert read(whole[:at], kind) == b"".join(contents[: ends.index(at)])
        return
    with pytest.raises(
        UnsupportedFormat, match=rf"'some file' cannot be decompressed .* byte {at}.*it ends in"
    ):
        read(whole[:at], kind)


@given(st.data(), kinds)
def test_a_flipped_bit_is_an_error_or_changes_nothing(data: st.DataObject, kind: Compression) -> None:
    content = data.draw(st.binary(min_size=1, max_size=300))
    whole = bytearray(compressed([content], kind))
    at = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[at // 8] ^= 1 << at % 8
    with contextlib.suppress(UnsupportedFormat):
        found = read(bytes(whole), kind)
        # In headers there are bits that mean nothing; and a frame may turn into one that is skipped.
        assert found == content or (kind == "zst" and not found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_cut_to_nothing_is_an_error_and_one_of_no_content_is_none(kind: Compression) -> None:
    with pytest.raises(UnsupportedFormat, match=r"'some file' cannot .* at about byte 0, .* it has no byte"):
        read(b"", kind)
    assert read(compressed([b""], kind), kind) == b""


def test_padding_of_zeros_and_skippable_frames_are_no_content() -> None:
    assert read(gzip.compress(b"one") + bytes(1000) + gzip.compress(b"two") + bytes(7), "gz", 5) == b"onetwo"
    assert (
        read(SKIPPABLE + zst_frame(b"one") + SKIPPABLE + zst_frame(b"two") + SKIPPABLE, "zst", 5) == b"onetwo"
    )


def test_garbage_is_refused_at_the_start_and_at_the_end() -> None:
    for data in (b"good day", gzip.compress(b"one") + b"good day", bytes(20) + gzip.compress(b"one")):
        with pytest.raises(UnsupportedFormat, match=r"gzip -t 'some file'"):
            read(data, "gz")
    for data in (b"good day", zst_frame(b"one") + b"good day"):
        with pytest.raises(UnsupportedFormat, match=r"zstd -dc 'some file' > NEW"):
            read(data, "zst")


@pytest.mark.parametrize("kind", KINDS)
def test_a_lot_of_content_of_few_bytes_comes_in_pieces(kind: Compression) -> None:
    content = bytes(6 << 20)
    data = gzip.compress(content) if kind == "gz" else zst_frame(content) + SKIPPABLE + zst_frame(b"end")
    sizes = [len(piece) for piece in inflated([data], kind, "some file")]
    assert sum(sizes) == (6 << 20) + 3 * (kind == "zst")
    assert max(sizes) <= (1 << 20) + (128 << 10)


@pytest.mark.parametrize("with_size", [True, False])
def test_frames_of_many_blocks_are_read_in_steps(with_size: bool) -> None:  # noqa: FBT001 - a case
    noise = random.Random(1).randbytes(300_000)
    content = noise + bytes(500_000) + noise[:70_000] * 3
    engine = zstandard.ZstdCompressor(write_checksum=with_size, write_content_size=with_size)
    data = SKIPPABLE + engine.compress(content) * 2
    assert read(data, "zst") == read(data, "zst", 101) == content * 2


def test_a_wrong_checksum_is_an_error() -> None:
    data = bytearray(gzip.compress(b"good day"))
    data[-5] ^= 1
    with pytest.raises(UnsupportedFormat, match="incorrect data check"):
        read(bytes(data), "gz")
    with pytest.raises(gzip.BadGzipFile):
        gzip.decompress(data)


@pytest.mark.parametrize(
    ("name", "kind", "plain"),
    [
        ("a.jsonl.gz", "gz", "a.jsonl"),
        ("a.jsonl.GZ", "gz", "a.jsonl"),
        ("d.gz/a.jsonl", None, "d.gz/a.jsonl"),
        ("a.zst", "zst", "a"),
        ("a.tgz", "gz", "a.tar"),
        ("gz", None, "gz"),
        ("", None, ""),
    ],
)
def test_names_tell_of_compression(name: str, kind: str | None, plain: str) -> None:
    assert (compression_of(name), uncompressed_name(name)) == (kind, plain)


def test_a_record_of_more_content_than_the_limit_is_refused_wherever_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEEKABLE_RECORD_BYTES", str(1 << 20))
    bomb = bytes(3 << 20)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\n" + b"x" * (3 << 20) + b"\nend\n"))
    ds = sk.open(tmp_path / "a.txt.gz")
    assert (ds[0], ds[2]) == ("one", "end")
    stored = io.BytesIO()
    np.savez_compressed(stored, bomb)
    kaldi.write(tmp_path / "a", bomb, "blob")
    (tmp_path / "a.gz").write_bytes(gzip.compress((tmp_path / "a").read_bytes()))
    (tmp_path / "a.scp").write_text(f"u {tmp_path}/a.gz\n")
    for read in (
        lambda: ds[1],
        lambda: list(sk.open_stream(tmp_path / "a.txt.gz")),
        lambda: field_decoder("a.gz").decode(memoryview(gzip.compress(bomb))),
        lambda: field_decoder("npz").decode(memoryview(stored.getvalue())),
        lambda: sk.open(f"scp:{tmp_path}/a.scp", format=sk.formats.Kaldi(holder="blob"))[0],
        lambda: kaldi.read(tmp_path / "a.gz", "blob"),
    ):
        with pytest.raises(ValueError, match=r"one record has .* bytes.*set SEEKABLE_RECORD_BYTES"):
            read()
    monkeypatch.setenv("SEEKABLE_RECORD_BYTES", str(4 << 20))
    assert len(ds[1]) == 3 << 20


def test_a_window_above_the_limit_is_refused_until_it_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = zstandard.ZstdCompressionParameters.from_level(1, window_log=28)
    engine = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    data = engine.compress(b"good day") + engine.flush()
    with pytest.raises(
        UnsupportedFormat, match=r"'some file'.* more than 134,217,728 .*WINDOW_BYTES=2147483648"
    ):
        read(data, "zst")
    monkeypatch.setenv("SEEKABLE_ZSTD_WINDOW_BYTES", str(1 << 28))
    assert read(data, "zst") == b"good day"
