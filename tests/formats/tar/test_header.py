"""The fields of a header, the forms of its checksum, and PAX records."""

from __future__ import annotations

import tarfile

import numpy as np
import pytest
from tests.formats.tar.archives import summed

from seekable.formats.tar.header import (
    find_flaw,
    header_names,
    header_number,
    matters,
    pax_fields,
    pax_records,
)

CHECKSUM = slice(148, 156)


def block(name: str = "a.txt", form: int = tarfile.USTAR_FORMAT, **fields: object) -> bytes:
    info = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(form)[-512:]  # type: ignore[arg-type]


def flaw(*heads: bytes) -> tuple[int, str] | None:
    return find_flaw(np.frombuffer(b"".join(heads), np.uint8).reshape(-1, 512))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (b"00000001750\0", 1000),
        (b"00000001750 ", 1000),
        (b"       1750 ", 1000),
        (b"  12 \0xxxxxx", 10),
        (b"110000000000", 9 << 30),
        (b"777777777777", 8**12 - 1),
        (bytes(12), 0),
        (b" " * 12, 0),
        (b"\x80\0\0\0\0\0\0\x02\x40\0\0\0", 9 << 30),
    ],
)
def test_numbers_are_octal_or_binary(field: bytes, value: int) -> None:
    assert header_number(field) == value


@pytest.mark.parametrize(
    "field", [b"0000000175x\0", b"-1\0", b"+1\0", b"1_0\0", b"00000000008\0", b"\xff" * 12, b"\x81" * 12]
)
def test_other_numbers_are_errors(field: bytes) -> None:
    with pytest.raises(ValueError, match=r"octal|negative"):
        header_number(field.ljust(12, b"\0"))


@pytest.mark.parametrize("form", ["%06o\0 ", "%06o \0", "%07o\0"])
def test_checksums_of_all_writers_pass(form: str) -> None:
    assert flaw(summed(block(), form)) is None


def test_a_checksum_with_spaces_before_it_passes_in_a_header_of_that_style() -> None:
    old = summed(block()[:100] + b"   644 \0" + block()[108:], "%6o\0 ")
    assert flaw(old) is None
    found = flaw(summed(block()), old, summed(block(), "%6o\0 "))
    assert found is not None
    assert found[0] == 2


def test_sums_of_signed_bytes_pass_where_all_headers_have_them() -> None:
    plain, signed = summed(block("\u00e9.txt")), summed(block("\u00e9.txt"), signed=True)
    assert plain != signed
    assert flaw(plain, plain) is None
    assert flaw(signed, block(), signed) is None
    assert flaw(signed, plain) == (
        1,
        "the header is damaged: its checksum 3799 sums other bytes than those before",
    )
    found = flaw(block(), plain, signed)
    assert found is not None
    assert found[0] == 2


def test_the_first_flaw_is_reported() -> None:
    bad_size = summed(block()[:124] + b"0000000000x\0" + block()[136:])
    assert flaw(block(), bad_size, bytes(512)) == (
        1,
        "the size in the header is b'0000000000x\\x00' where an octal number must stand",
    )
    assert flaw(block(), bytes(511) + b"x", bad_size) == (
        1,
        "no header stands there: its checksum is b'" + "\\x00" * 8 + "'",
    )


def test_a_prefix_counts_with_the_magic_of_posix_alone() -> None:
    posix = block("d/" * 60 + "a.txt")
    assert posix[345:347] == b"d/"
    gnu = posix[:257] + b"ustar  \0" + posix[265:]
    names = header_names(np.frombuffer(posix + gnu, np.uint8).reshape(-1, 512))
    assert names == [b"d/" * 60 + b"a.txt", posix[:100].rstrip(b"\0")]


def test_names_end_at_the_first_nul_and_lose_final_slashes() -> None:
    full, cut, slashes = (b"x" * 100 + bytes(412), b"a.txt\0junk".ljust(512, b"\0"), b"d//".ljust(512, b"\0"))
    names = header_names(np.frombuffer(full + cut + slashes, np.uint8).reshape(-1, 512))
    assert names == [b"x" * 100, b"a.txt", b"d"]


def test_records_may_hold_any_bytes() -> None:
    assert pax_records(b"14 path=a.txt\n11 k=a\nb=\xff\n12 path=b.c\n\0\0") == {
        b"path": b"b.c",
        b"k": b"a\nb=\xff",
    }
    assert pax_records(b"") == {}


@pytest.mark.parametrize(
    "body",
    [
        b"14 path=a.tx\n",
        b"15 path=a.txt\n",
        b"x path=a\n",
        b"7 path\n",
        b" path=a\n",
        b"0 path=\n",
        b"5 =a\n",
        b"9 path=a\n\0x",
    ],
)
def test_damaged_records_are_errors(body: bytes) -> None:
    with pytest.raises(ValueError, match="PAX records are damaged at their byte"):
        pax_fields(body)


@pytest.mark.parametrize("body", [b"8 path=\n", b"11 path=a\0\n", b"10 size=x\n", b"11 size=-1\n"])
def test_names_and_sizes_that_cannot_be_are_errors(body: bytes) -> None:
    with pytest.raises(ValueError, match="the PAX record of the"):
        pax_fields(body)


@pytest.mark.parametrize(
    "key", ["path", "size", "linkpath", "GNU.sparse.major", "GNU.sparse.name", "GNU.sparse.map"]
)
def test_keys_that_matter_are_seen(key: str) -> None:
    assert matters(f"20 {key}=1\n".encode())
    assert not matters(b"20 mtime=1\n20 comment=a\n20 uname=path\n")
