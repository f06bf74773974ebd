"""Damaged archives: an error with the offset and the last good member, never fewer members."""

from __future__ import annotations

import io
import random
import re
import tarfile

import pytest
from tests.formats.tar.archives import END, archive, grouped, head, padded, pax, refused, walked
from tests.thrift import sample

from seekable.errors import UnsupportedFormat

GOOD = b"".join(head(b"%s.txt" % name, 3) + padded(b"abc") for name in (b"a", b"b", b"c")) + bytes(
    10240 - 3072
)
"""Members at bytes 0, 1,024 and 2,048; the end mark at 3,072."""

CUT = "The archive is damaged, or was cut: put a whole copy of it there"
AFTER_A = "the last good member is 'a.txt' at byte 0"
AFTER_B = "the last good member is 'b.txt' at byte 1024"
AFTER_C = "the last good member is 'c.txt' at byte 2048"
CONCATENATED = "sk.formats.Tar(concatenated=True) reads archives joined by cat"

DAMAGE: dict[str, tuple[bytes, int, str, str]] = {
    "cut in the last padding": (
        GOOD[:3071],
        2048,
        "the member is cut: its data end at byte 3072, behind the end of the file",
        AFTER_B,
    ),
    "cut in the data": (GOOD[:2562], 2048, "the member is cut: its data end at byte 3072", AFTER_B),
    "cut in a header": (GOOD[:2148], 2048, "100 bytes, where a header has 512: the file ends there", AFTER_B),
    "cut after a header": (GOOD[:2560], 2048, "the member is cut: its data end at byte 3072", AFTER_B),
    "wrong checksum": (
        GOOD[:1030] + b"Z" + GOOD[1031:],
        1024,
        "the header is damaged: its checksum is 3536, and the sum of its bytes is 3626",
        AFTER_A,
    ),
    "size that is no number": (
        GOOD[:1024] + head(b"b.txt", b"0000000000z\0") + GOOD[1536:],
        1024,
        "the size in the header is b'0000000000z\\x00' where an octal number must stand",
        AFTER_A,
    ),
    "negative size": (
        GOOD[:1024] + head(b"b.txt", b"\xff" * 11 + b"\xfd") + GOOD[1536:],
        1024,
        "the size in the header is the negative number",
        AFTER_A,
    ),
    "size beyond the file": (
        GOOD[:1024] + head(b"b.txt", 1 << 32) + GOOD[1536:],
        1024,
        "the member is cut: its data end at byte 4294968832, behind the end of the file",
        AFTER_A,
    ),
    "size beyond all files": (
        GOOD[:1024] + head(b"b.txt", b"\x80" + b"\xff" * 11) + GOOD[1536:],
        1024,
        "the member is cut",
        AFTER_A,
    ),
    "second archive": (GOOD + GOOD, 10240, "more than zeros behind the end mark at byte 3072", AFTER_C),
    "junk behind the end mark": (GOOD + b"junk", 10240, "a second archive, or junk", AFTER_C),
    "junk without an end mark": (GOOD[:3072] + b"junk" * 128, 3072, "no header stands there", AFTER_C),
    "archive behind one zero block": (
        GOOD[:3584] + GOOD,
        3584,
        "more than zeros behind the end mark",
        AFTER_C,
    ),
    "empty": (b"", 0, "the file is empty", "no good member is before it"),
    "text": (
        b"good day\n" * 500,
        0,
        "no header stands there: its checksum is",
        "no good member is before it",
    ),
    "short text": (b"good day\n", 0, "9 bytes, where a header has 512", "no good member is before it"),
}


@pytest.mark.parametrize("which", DAMAGE)
def test_damage_is_an_error_with_the_offset_and_the_last_good_member(which: str) -> None:
    data, at, what, last = DAMAGE[which]
    told = refused(data)
    assert f": byte {at}: " in told
    assert what in told
    assert f"; {last}. " in told
    assert told.endswith(CONCATENATED if "concatenated" in told else CUT)


def test_the_cause_is_reported_and_not_what_it_led_to() -> None:
    wrong_size = GOOD[:1024] + GOOD[1024:1148] + b"7" + GOOD[1149:]
    assert "byte 1024: the header is damaged: its checksum is 3536" in refused(wrong_size)


@pytest.mark.parametrize("data", [GOOD[:3072], GOOD[:1024]])
def test_no_end_mark_is_warned_of(data: bytes) -> None:
    found, taken = walked(data)
    assert len(found) == len(data) // 1024
    assert taken.end == len(data)
    (warning,) = taken.warnings
    assert (
        f"a/b.tar: the archive has no end mark: its writer was not closed, or it was cut at byte {len(data)}"
        in warning
    )
    assert grouped(data).warnings == (warning,)


@pytest.mark.parametrize("zeros", [512, 1024, 10240, 100_000])
def test_any_number_of_zeros_is_an_end(zeros: int) -> None:
    found, taken = walked(GOOD[:3072] + bytes(zeros))
    assert (len(found), taken.end, taken.warnings) == (3, 3072, [])


@pytest.mark.parametrize("zeros", [512, 1024, 10240])
def test_zeros_are_an_archive_without_members(zeros: int) -> None:
    samples = grouped(bytes(zeros))
    assert samples.starts.tolist() == [0]
    assert samples.first_members.tolist() == [0]
    assert samples.field_names == ()
    assert not samples.warnings


@pytest.mark.parametrize("zeros", [512, 1024, 7168, 70_000 // 512 * 512])
def test_archives_joined_by_cat_are_read_when_that_is_said(zeros: int) -> None:
    joined = GOOD[:3072] + bytes(zeros) + GOOD[:1024] + bytes(zeros) + GOOD
    found, taken = walked(joined, concatenated=True)
    assert [name for name, *_ in found] == [
        b"a.txt",
        b"b.txt",
        b"c.txt",
        b"a.txt",
        b"a.txt",
        b"b.txt",
        b"c.txt",
    ]
    assert all(joined[at : at + size] == b"abc" for *_, at, size in found)
    assert taken.end == len(joined) - len(GOOD) + 3072
    with pytest.raises(UnsupportedFormat, match=f"byte {3072 + zeros + 1024 + zeros + 3072}"):
        walked(joined[: -len(GOOD) + 3072] + b"junk" * 128, concatenated=True)


FLIPPED = b"".join(
    (
        head(b"first.txt", 5) + padded(b"12345"),
        pax(b"20 mtime=1700000000\n") + head(b"d/a.txt", 1) + padded(b"x"),
        pax(b"20 mtime=1700000000\n16 path=d/a.jpg\n") + head(b"PaxName", 0),
        head(b"././@LongLink", 121, kind=b"L", magic="gnu")
        + padded(b"n" * 120 + b"\0")
        + head(b"n" * 100, 3, magic="gnu"),
        padded(b"abc") + head(b"d/", 0, kind=b"5") + head(b"h.txt", 0, kind=b"1", link=b"first.txt"),
        head("\u00e9.txt".encode(), 0) + head(b"z.txt", b"\x80" + bytes(11), kind=b"\0", magic="v7") + END,
    )
)
HEADERS = [0, 1024, 2048, 3072, 4096, 4608, 5632, 6656, 7168, 7680, 8192]
"""The offsets of the headers of `FLIPPED`, and of none of its PAX records and long names."""


def test_the_archive_that_is_damaged_below_is_sound() -> None:
    assert [name for name, *_ in walked(FLIPPED)[0]][:3] == [b"first.txt", b"d/a.txt", b"d/a.jpg"]
    assert len(walked(FLIPPED)[0]) == 7
    with tarfile.open(fileobj=io.BytesIO(FLIPPED)) as tar:
        assert len(tar.getmembers()) == 8


@pytest.mark.parametrize("bits", [1, 0x10, 0x80, 0xFF])
def test_any_byte_of_any_header_that_is_changed_is_an_error(bits: int) -> None:
    for start in HEADERS:
        for at in sample(range(start + bits % 5, start + 512, 5), of=3):
            assert_flip_is_found(at, FLIPPED[at] ^ bits)


@pytest.mark.exhaustive
def test_any_byte_of_any_header_with_two_of_its_bits_changed_in_turn_is_an_error() -> None:
    for start in HEADERS:
        for at in range(start, start + 512):
            is_sum = 148 <= at - start < 156
            for byte in range(256) if is_sum else (FLIPPED[at] ^ 1 << bit for bit in (at % 8, (at + 3) % 8)):
                if byte != FLIPPED[at]:
                    assert_flip_is_found(at, byte)


def assert_flip_is_found(at: int, byte: int) -> None:
    changed = FLIPPED[:at] + bytes([byte]) + FLIPPED[at + 1 :]
    with pytest.raises(UnsupportedFormat) as raised:
        walked(changed)
    # A checksum that became the sum of signed bytes is found by the next one, which is not.
    found = re.findall(r"byte (\d+): ", str(raised.value))
    assert int(found[0]) - at // 512 * 512 in ({0, 512} if at // 512 * 512 == HEADERS[-2] else {0}), (
        at,
        byte,
    )


def test_a_changed_byte_elsewhere_loses_no_member() -> None:
    rng = random.Random(5)
    for _ in range(300):
        at = rng.randrange(len(FLIPPED))
        changed = FLIPPED[:at] + bytes([FLIPPED[at] ^ 1 << rng.randrange(8)]) + FLIPPED[at + 1 :]
        try:
            found, _ = walked(changed)
        except UnsupportedFormat:
            continue
        assert len(found) == 7


def test_every_cut_is_an_error_or_warned_of() -> None:
    data = archive(["a.txt", "a.jpg", "b.txt"], format=tarfile.PAX_FORMAT)[:3584]
    for length in range(1, 3072):
        try:
            found, taken = walked(data[:length])
        except UnsupportedFormat:
            assert length % 1024
        else:
            assert not length % 1024
            assert len(found) == length // 1024
            assert len(taken.warnings) == 1
