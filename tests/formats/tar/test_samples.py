"""Members become the samples that WebDataset makes of them, but for three stated differences."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.tar.archives import END, archive, grouped, head, pax, records, refused
from xxhash import xxh3_64_intdigest

from seekable.errors import UnsupportedFormat
from seekable.formats.tar.samples import SampleRule, split_name
from seekable.index.digest import key_hash

LAST = SampleRule(split="last")
JOINED = SampleRule(adjacent=False)
PAIRS = SampleRule(pairs=True)

Sample = tuple[str, dict[str, bytes]]

FOLDERS = st.sampled_from(["", "d/", "d.x/", "./", "__m__/", "d/__m__/", "__x/", "\u00e9/"])
STEMS = st.sampled_from(["a", "b", "A", "_a", "__a", "__meta__", "a b", "\u00e9", "e\u0301", "a-1"])
SUFFIXES = st.sampled_from([".txt", ".TXT", ".jpg", ".a.b", "", ".", "..q", ".seg.png", ".__m__"])
NAMES = st.lists(st.builds("{}{}{}".format, FOLDERS, STEMS, SUFFIXES), max_size=9)


def model(names: list[str], data: list[bytes]) -> list[Sample] | None:
    """Return the samples of WebDataset's rules, written down once more; None where it raises."""
    samples: list[Sample] = []
    for name, payload in zip(names, data, strict=True):
        if re.match(r"__[^/]*__($|/)", name) or not (parts := re.match(r"((?:.*/|)[^.]+)[.]([^/]*)$", name)):
            continue
        key, field = parts[1], parts[2].lower()
        if not samples or samples[-1][0] != key:
            samples.append((key, {}))
        if field in samples[-1][1]:
            return None
        samples[-1][1][field] = payload
    return samples


def compare(data: bytes, expected: list[Sample] | None) -> None:
    """Compare samples; what WebDataset delivers in parts is an error."""
    samples, told = None, ""
    try:
        samples = grouped(data)
    except UnsupportedFormat as error:
        told = str(error)
    if samples is None:
        fields: dict[str, set[frozenset[str]]] = {}
        for key, record in expected or []:
            fields.setdefault(key, set()).add(frozenset(record))
        message = "is the second one of its field" if expected is None else "are not next to each other"
        assert message in told
        assert expected is None or max(map(len, fields.values())) > 1
        return
    assert expected is not None
    assert records(data, samples) == [record for _, record in expected]
    assert [list(record) for record in records(data, samples)] == [list(record) for _, record in expected]
    assert samples.key_hashes.tolist() == [key_hash(key) for key, _ in expected]


@given(NAMES)
def test_samples_are_those_of_the_rules(names: list[str]) -> None:
    data = archive(names)
    compare(data, model(names, [f"{row} {name}".encode() for row, name in enumerate(names)]))


@given(NAMES, st.integers(1, 3))
def test_samples_are_the_same_in_runs_of_any_length(names: list[str], length: int) -> None:
    names = ["a.txt", "b.jpg", "b.a.b", "b.__m__", *names, "c.txt", "c.jpg", "d.jpg", "d.txt"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seekable.formats.tar.walk._BATCH", length)
        compare(archive(names), model(names, [f"{row} {name}".encode() for row, name in enumerate(names)]))


def test_metadata_is_left_out_behind_a_sample_whose_key_it_seems_to_have() -> None:
    names = ["a.b__", "__a.txt", "__a.b__"]
    compare(archive(names), [("a", {"b__": b"0 a.b__"}), ("__a", {"txt": b"1 __a.txt"})])


def test_samples_are_those_of_webdataset() -> None:
    tariterators = pytest.importorskip("webdataset.tariterators")

    @given(NAMES)
    def check(names: list[str]) -> None:
        data = archive(names)
        files = ({**file, "__url__": "x"} for file in tariterators.tar_file_iterator(io.BytesIO(data)))
        expected: list[Sample] | None
        try:
            made: list[dict[str, Any]] = [*tariterators.group_by_keys(files)]
            expected = [(sample.pop("__key__"), sample) for sample in made]
            for _, sample in expected:
                del sample["__url__"]
        except ValueError:
            expected = None
        compare(data, expected)

    check()


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("d.x/a.b.jpg", ("d.x/a", "b.jpg"), ("d.x/a.b", "jpg")),
        ("d.x/a", None, None),
        ("./a.jpg", ("./a", "jpg"), ("./a", "jpg")),
        (".hidden", None, None),
        ("._a.jpg", None, None),
        ("./._a.jpg", None, None),
        ("d/._a.jpg", None, None),
        ("noext", None, None),
        ("a.", ("a", ""), ("a", "")),
        ("a..jpg", ("a", ".jpg"), ("a.", "jpg")),
        ("A.JPEG.Gz", ("A", "JPEG.Gz"), ("A.JPEG", "Gz")),
        ("__meta__", None, None),
        ("__x__/y.txt", None, None),
        ("__meta__.json", ("__meta__", "json"), ("__meta__", "json")),
        ("d/__m__/a.txt", ("d/__m__/a", "txt"), ("d/__m__/a", "txt")),
        ("_a.txt", ("_a", "txt"), ("_a", "txt")),
        ("", None, None),
        (".", None, None),
        ("d/", None, None),
    ],
)
def test_names_are_split(name: str, first: tuple[str, str] | None, last: tuple[str, str] | None) -> None:
    for rule, expected in ((SampleRule(), first), (LAST, last)):
        parts = split_name(name.encode(), rule)
        assert (parts and tuple(part.decode() for part in parts)) == expected


def test_files_of_macos_do_not_split_samples() -> None:
    data = archive(["d/._a.jpg", "d/a.jpg", "d/._a.txt", "d/a.txt"])
    assert records(data, grouped(data)) == [{"jpg": b"1 d/a.jpg", "txt": b"3 d/a.txt"}]


def test_a_sample_begins_at_its_first_member_and_the_last_ends_at_the_end_mark() -> None:
    data = archive(["README", "a.x", "a.y", "NOTES", "b.x", "b.y"])
    samples = grouped(data)
    assert samples.starts.tolist() == [1024, 4096, 6144]
    assert samples.first_members.tolist() == [0, 2, 4]
    assert samples.fields.tolist() == [0, 1, 0, 1]
    assert samples.field_names == ("x", "y")


def test_samples_go_on_from_run_to_run() -> None:
    names = [f"{row // 3}.{'abc'[row % 3]}" for row in range(5000)]
    samples = grouped(empty(names))
    assert samples.first_members.tolist() == [*range(0, 5000, 3), 5000]
    assert samples.key_hashes.tolist() == [key_hash(str(row)) for row in range(1667)]
    assert (samples.fields == np.arange(5000) % 3).all()
    told = refused(empty([*names[:4096], "z.a", *names[4096:]]))
    assert "of the sample '1365' at byte 2096640 are not next to each other: others" in told
    assert "others are at byte 2097664. " in told


def test_a_torn_sample_is_an_error_with_both_offsets_and_the_ways_out() -> None:
    data = archive(["a.x", "b.x", "a.y", "b.y"])
    assert refused(data) == (
        "a/b.tar: the members of the sample 'a' at byte 0 are not next to each other: others are at byte "
        "2048. Re-create the archive with tar --sort=name, or open it with "
        "format=sk.formats.Tar(group='key')"
    )
    assert records(data, grouped(data, JOINED)) == [
        {"x": b"0 a.x", "y": b"2 a.y"},
        {"x": b"1 b.x", "y": b"3 b.y"},
    ]


def test_torn_samples_of_a_large_archive_are_found_at_both_offsets() -> None:
    names = [f"{row}.x" for row in range(9000)]
    assert len(grouped(empty([*names, "8999.y"])).key_hashes) == 9000
    told = refused(empty([*names, "7.y"]))
    assert f"of the sample at byte {7 * 512} are not next to each other" in told
    assert f"others are at byte {9000 * 512}." in told


def test_a_key_that_comes_again_with_the_same_fields_is_a_record_of_its_own() -> None:
    data = archive(["a.x", "a.y", "b.x", "b.y", "a.y", "a.x"])
    assert [sorted(record) for record in records(data, grouped(data))] == [["x", "y"]] * 3
    assert "the field 'x' twice: its data are at byte 512 and at byte 5632" in refused(data, JOINED)


@given(st.permutations([f"{key}.{field}" for key in "abcd" for field in "xyz"]))
def test_joined_samples_do_not_depend_on_the_order_of_members(names: list[str]) -> None:
    data = archive(names)
    samples = grouped(data, JOINED)
    keys = list(dict.fromkeys(name[0] for name in names))
    assert samples.key_hashes.tolist() == [key_hash(key) for key in keys]
    firsts = [next(row for row, name in enumerate(names) if name[0] == key) for key in keys]
    assert samples.starts.tolist() == [*(1024 * row for row in firsts), 12288]
    for key, record in zip(keys, records(data, samples), strict=True):
        assert record == {n[2]: f"{row} {n}".encode() for row, n in enumerate(names) if n[0] == key}


@pytest.mark.parametrize("twin", ["a.txt", "a.TXT"])
def test_a_field_twice_is_an_error(twin: str) -> None:
    assert refused(archive(["0.txt", "a.jpg", "a.txt", twin])) == (
        f"a/b.tar: byte 3072: the member {twin!r} is the second one of its field in sample 'a', which begins "
        f"at byte 1024; rename or remove one of them"
    )


@pytest.mark.parametrize("field", ["__key__", "__url__", "__KEY__"])
def test_fields_with_names_of_records_are_errors(field: str) -> None:
    told = refused(archive(["a.x", f"a.{field}"]))
    assert f"byte 1024: the member 'a.{field}' would be the field {field.lower()!r}" in told


def test_fields_of_one_name_in_several_cases_are_one() -> None:
    data = archive(["a.JPG", "b.jpg", "c.Jpg"])
    assert grouped(data).field_names == ("jpg",)


def test_ids_with_dots_are_warned_of_and_split_at_the_last_dot() -> None:
    data = archive([f"sp0.9_{row}.{field}" for row in range(100) for field in ("jpg", "txt")])
    (warning,) = grouped(data).warnings
    assert warning == (
        "a/b.tar: 200 fields for 200 members: they may hold names of samples; if the ids of samples hold "
        "dots, open it with format=sk.formats.Tar(splitname='last')"
    )
    samples = grouped(data, LAST)
    assert samples.field_names == ("jpg", "txt")
    assert samples.key_hashes.tolist() == [key_hash(f"sp0.9_{row}") for row in range(100)]
    assert not samples.warnings


def test_an_archive_without_samples_is_warned_of() -> None:
    assert grouped(archive(["README", "d/.x"])).warnings == (
        "a/b.tar: no samples: of 2 members, no name has the form KEY.FIELD",
    )


def test_names_that_are_no_utf_8_are_kept() -> None:
    data = archive(["\udcff.\udcfe"])
    samples = grouped(data)
    assert samples.field_names == ("\udcfe",)
    assert samples.key_hashes.tolist() == [key_hash("\udcff")]


def test_pairs_have_ids_with_dots_and_slashes_and_may_come_again() -> None:
    names = ["sp0.9_u/1.flac", "sp0.9_u/1.json", ".u.nodata", ".u.nometa", "sp0.9_u/1.flac", "sp0.9_u/1.json"]
    data = archive(names)
    samples = grouped(data, PAIRS)
    assert samples.field_names == ("flac", "json", "nodata", "nometa")
    assert samples.key_hashes.tolist() == [key_hash(key) for key in ("sp0.9_u/1", ".u", "sp0.9_u/1")]
    assert samples.first_members.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.wav", "b.json"], "'a' at byte 0 has one member, and 'b.json' at byte 1024 is behind it"),
        (["a.wav", "a.json", "b.wav"], "'b' at byte 2048 has one member"),
        (["a.wav", "noext"], "the name 'noext' at byte 1024 has no suffix"),
        (["a.wav", "a.wav"], "byte 1024: the member 'a.wav' is the second one of its field"),
    ],
)
def test_incomplete_pairs_are_errors(names: list[str], message: str) -> None:
    assert message in refused(archive(names), PAIRS)


def test_the_digest_of_headers_sees_all_but_payloads() -> None:
    data = archive(["a.txt", "\u00e9" * 80 + ".txt"])
    digest = grouped(data).header_digest
    payload = data.index(b"0 a.txt")
    assert grouped(data[:payload] + b"9" + data[payload + 1 :]).header_digest == digest
    assert grouped(archive(["b.txt", "\u00e9" * 80 + ".txt"])).header_digest != digest
    assert grouped(archive(["a.txt", "\u00e8" * 80 + ".txt"])).header_digest != digest


def test_the_digest_is_that_of_headers_and_that_of_the_data_of_extended_ones() -> None:
    record = b"20 mtime=1700000000\n"
    heads = head(b"PaxHeader/a", len(record), kind=b"x") + head(b"a.txt", 0)
    digests = b"".join(xxh3_64_intdigest(data).to_bytes(8, "little") for data in (heads, record))
    assert grouped(pax(record) + heads[512:] + END).header_digest == xxh3_64_intdigest(digests)


def test_too_many_fields_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seekable.formats.tar.samples._MOST_FIELDS", 3)
    assert len(grouped(empty(["a.0", "a.1", "a.2"])).field_names) == 3
    told = refused(empty(["a.0", "a.1", "a.2", "b.0", "b.3"]))
    assert (
        "byte 2048: the member 'b.3' would be in field 4, and 3 are the most; if the ids of samples" in told
    )


def empty(names: list[str]) -> bytes:
    """Return an archive of empty files."""
    return b"".join(head(name.encode(), 0) for name in names) + END
