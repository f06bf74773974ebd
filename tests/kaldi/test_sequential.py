"""Tables read in their order: what comes, what raises, what option p leaves out, and the cursor."""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kaldi.holder_cases import TABLE_CASES, TABLE_IDS, Case, dumped, i32, plain

import seekable as sk
from seekable.formats.kaldi.basic_types import BASIC_TYPES
from seekable.kaldi import SequentialReader, Writer, find_holder, holder_names

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def entries(spec: str, holder: str = "int32", **options: Any) -> list[tuple[str, Any]]:
    with SequentialReader(spec, holder, **options) as reader:
        return [(key, plain(value)) for key, value in reader]


def read_until_error(spec: str, holder: Any = "int32", **options: Any) -> tuple[list[Any], Exception | None]:
    """The entries before an error, and the error."""
    found: list[Any] = []
    try:
        with SequentialReader(spec, holder, **options) as reader:
            for entry in reader:
                found.append(entry)  # noqa: PERF402 - those before the error are kept
    except Exception as error:  # noqa: BLE001 - the caller looks at it
        return found, error
    return found, None


def ways(path: str) -> list[str]:
    """Rspecifiers that read the same archive: mapped by buffers, streamed, decompressed, and in a thread."""
    return [f"ark:{path}", f"ark,bg:{path}", f"ark:cat {path} |", f"ark,o,s,cs,t:gunzip -c {path}.gz |"]


@pytest.mark.parametrize("options", ["", ",bg", ",p", ",o,s,cs,b", ",bg,p"])
def test_an_archive_and_its_script_give_the_same_entries(options: str, here: Path) -> None:
    (here / "a.ark").write_bytes(b"b 1 2\na 3\nb \nc\n")
    (here / "a.scp").write_bytes(b"b a.ark:2\na a.ark:8\nb a.ark:12\nc a.ark:14\n")
    for kind in ("ark", "scp"):
        with SequentialReader(f"{kind}{options}:a.{kind}", "int32-vector") as reader:
            found = [(key, value.tolist()) for key, value in reader]
        assert found == [("b", [1, 2]), ("a", [3]), ("b", []), ("c", [])]
        assert not reader.is_open


@pytest.mark.parametrize("case", TABLE_CASES, ids=TABLE_IDS)
def test_every_holder_is_read_from_archives_and_scripts(case: Case, here: Path) -> None:
    holder = find_holder(case.holder)
    forms = [dumped(case.holder, case.value)]
    if case.text is not None and case.holder != "sparse-vector":  # Its text has no end.
        forms.append(case.text)
    archive, script = b"", b""
    for number in range(6):
        archive += b"k%d " % number
        script += b"k%d a.ark:%d\n" % (number, len(archive))
        archive += forms[number % len(forms)]
    (here / "a.ark").write_bytes(archive)
    (here / "a.ark.gz").write_bytes(gzip.compress(archive))
    (here / "a.scp").write_bytes(script)
    expected = [(f"k{number}", plain(case.value)) for number in range(6)]
    for spec in [*ways("a.ark"), "scp:a.scp", "scp,bg:a.scp"]:
        assert entries(spec, case.holder) == expected, spec
    assert holder.name == case.holder


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_tables_of_any_size(count: int, here: Path) -> None:
    with Writer("ark,scp:a.ark,a.scp", "matrix") as writer:
        for number in range(count):
            writer.write(f"u{number}", np.full((number % 7 + 1, 30), number, "f4"))
    (here / "a.ark.gz").write_bytes(gzip.compress((here / "a.ark").read_bytes()))
    for spec in [*ways("a.ark"), "scp:a.scp", "ark,p:a.ark"]:
        with SequentialReader(spec, "matrix") as reader:
            found = [(key, value.shape[0], float(value.sum())) for key, value in reader]
        assert found == [(f"u{n}", n % 7 + 1, float((n % 7 + 1) * 30 * n)) for n in range(count)]


def test_arrays_are_the_callers_own(here: Path) -> None:
    values = [np.full((300, 40), number, "f4") for number in range(5)] + [np.ones((2, 2), "f4")]
    with Writer("ark,scp:a.ark,a.scp", "matrix") as writer:
        for number, value in enumerate(values):
            writer.write(f"u{number}", value)
    (here / "a.ark.gz").write_bytes(gzip.compress((here / "a.ark").read_bytes()))
    before = (here / "a.ark").read_bytes()
    for spec in [*ways("a.ark"), "scp:a.scp"]:
        with SequentialReader(spec, "matrix") as reader:
            kept = [value for _, value in reader]
        assert all(np.array_equal(one, two) for one, two in zip(kept, values, strict=True))
        for value in kept:
            np.add(value, 1, out=value)
        assert all(np.array_equal(one, two + 1) for one, two in zip(kept, values, strict=True))
    assert (here / "a.ark").read_bytes() == before


def test_text_binary_and_concatenated_archives_mix(here: Path) -> None:
    one = b"a " + dumped("matrix", np.eye(2, dtype="f4"))
    two = b"b " + dumped("matrix", np.eye(3, dtype="f4"), binary=False)
    three = b"\n\t c\t" + dumped("compressed-matrix", np.eye(9, dtype="f4"), method=2)
    (here / "a.ark").write_bytes(one + two + three + two + one)
    found = entries("ark:a.ark", "matrix")
    assert [(key, value[2]) for key, value in found] == [
        *(("a", (2, 2)), ("b", (3, 3)), ("c", (9, 9))),
        *(("b", (3, 3)), ("a", (2, 2))),
    ]


def test_the_field_too_many_of_an_empty_compressed_matrix_is_passed(here: Path) -> None:
    empty = b"\0BCM " + struct.pack("<ffii", 0, 0, 0, 0)
    (here / "a.ark").write_bytes(b"a " + empty + b"\0\0\0\0b " + empty + b"c " + empty + b"\0\0\0\0")
    (here / "a.ark.gz").write_bytes(gzip.compress((here / "a.ark").read_bytes()))
    for spec in ways("a.ark"):
        assert [(key, value[2]) for key, value in entries(spec, "matrix")] == [
            ("a", (0, 0)),
            ("b", (0, 0)),
            ("c", (0, 0)),
        ]


def test_windows_line_ends_and_odd_white_space(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 2\r\nb\r\n \n\n c\t3\r\n")
    assert [(k, list(np.frombuffer(v[3], v[1]))) for k, v in entries("ark:a.ark", "int32-vector")] == [
        ("a", [1, 2]),
        ("b", []),
        ("c", [3]),
    ]
    (here / "m.ark").write_bytes(b"a [\r\n 1 2\r\n 3 4 ]\r\nb [ 5 6 ]\r\n")
    assert [value[2] for _, value in entries("ark:m.ark", "matrix")] == [(2, 2), (1, 2)]


def test_archives_begin_at_an_offset(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \nb 2 \nc 3 \n")
    assert entries("ark:a.ark:5") == [("b", 2), ("c", 3)]


def test_a_reader_of_many_small_entries_reads_in_large_pieces(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "a.ark").write_bytes(b"".join(b"u%05d %d \n" % (n, n) for n in range(20_000)))
    sizes = []
    pread = os.pread

    def counted(descriptor: int, count: int, position: int) -> bytes:
        sizes.append(count)
        return pread(descriptor, count, position)

    monkeypatch.setattr(os, "pread", counted)
    assert len(entries("ark:a.ark")) == 20_000
    assert len(sizes) < 20


@pytest.mark.parametrize("rows", [0, 1, 40, 41, 160, 164, 165, 700])
def test_large_and_small_entries_alternate(rows: int, here: Path) -> None:
    """Reads of large arrays take what follows into the buffer; entries end before, at and behind its end."""
    values = {}
    for number in range(40):
        count = rows if number % 3 else number
        values[f"{'k' * (number * 37 + 1)}"] = np.arange(count * 25, dtype="f4").reshape(
            count, 25 if count else 0
        )
    with Writer("ark,scp:a.ark,a.scp", "matrix") as writer:
        for key, value in values.items():
            writer.write(key, value)
    (here / "a.ark.gz").write_bytes(gzip.compress((here / "a.ark").read_bytes()))
    for spec in [*ways("a.ark"), "scp:a.scp"]:
        assert entries(spec, "matrix") == [(key, plain(value)) for key, value in values.items()]


BROKEN = [
    (b"b", "b", 11, "a space and an object after the key"),
    (b"b ", "b", 12, "line end"),
    (b"b 5", "b", 13, "line end"),
    (b"b x \n", "b", 12, "a number of type int32"),
    (b"b \0B\4\1\0", "b", 14, "int32"),
    (b"b \0B\x08\1\0\0\0\0\0\0\0", "b", 14, "0x04"),
    (b"b\x0c5 \n", "b", 11, "a space and an object"),
    (b"\0B\4\1\0\0\0", None, 10, "a key and a space"),
    (b"b\x01 5 \n", None, 10, "a key and a space"),
    (b"\xff 5 \n", None, 10, "a key and a space"),
]


@pytest.mark.parametrize(("rest", "key", "offset", "expected"), BROKEN, ids=range(len(BROKEN)))
@pytest.mark.parametrize("way", range(4))
def test_damage_raises_after_the_good_entries(
    rest: bytes, key: str | None, offset: int, expected: str, way: int, here: Path
) -> None:
    data = b"a 1 \nz 2 \n" + rest
    (here / "a.ark").write_bytes(data)
    (here / "a.ark.gz").write_bytes(gzip.compress(data))
    found, error = read_until_error(ways("a.ark")[way])
    assert found == [("a", 1), ("z", 2)]
    assert isinstance(error, sk.errors.CorruptObject)
    assert (error.key, error.offset) == (key, offset)
    assert "a.ark" in error.path
    assert expected in error.expected


@pytest.mark.parametrize("rest", [each[0] for each in BROKEN], ids=repr)
def test_option_p_stops_at_damage_with_one_warning(rest: bytes, here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \nz 2 \n" + rest)
    for spec in ("ark,p:a.ark", "ark,p,bg:a.ark"):
        with pytest.warns(
            sk.errors.KaldiWarning, match="option p leaves out the rest of the table"
        ) as caught:
            assert entries(spec) == [("a", 1), ("z", 2)]
        assert len(caught) == 1


def test_an_archive_cut_at_any_byte_gives_its_whole_entries_and_an_error(here: Path) -> None:
    ends, data = [0], b""
    for number in range(3):
        data += f"u{number} ".encode() + dumped("int32-vector", np.arange(number + 1, dtype="i4"))
        ends.append(len(data))
    for cut in range(len(data) + 1):
        (here / "a.ark").write_bytes(data[:cut])
        found, error = read_until_error("ark:a.ark", "int32-vector")
        assert len(found) == sum(end <= cut for end in ends[1:])
        assert (error is None) == (cut in ends)
        assert error is None or isinstance(error, sk.errors.CorruptObject)


def test_an_error_of_the_first_entry_is_raised_at_once(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a x \n")
    with pytest.raises(sk.errors.CorruptObject):
        SequentialReader("ark:a.ark", "int32")
    with pytest.raises(sk.DataNotFound):
        SequentialReader("ark:none.ark", "int32")
    for spec in ("ark,p:none.ark", "scp:none.scp", "scp,p:none.scp", "scp,p,bg:none.scp"):
        with pytest.raises(sk.DataNotFound):
            SequentialReader(spec, "int32")


def test_after_an_error_the_reader_is_done_and_raises_it_again(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \nb x \nc 3 \n")
    reader = SequentialReader("ark:a.ark", "int32")
    with pytest.raises(sk.errors.CorruptObject):
        reader.next()
    assert reader.done
    for use in (reader.next, lambda: list(reader)):
        with pytest.raises(sk.errors.CorruptObject):
            use()
    with pytest.raises(sk.errors.InvalidArgument, match="it is done"):
        _ = reader.key
    reader.close()


def test_a_failed_command_raises_after_its_entries(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \nb 2 \n")
    found, error = read_until_error("ark:cat a.ark; exit 3 |", pipes="allow")
    assert found == [("a", 1), ("b", 2)]
    assert isinstance(error, sk.errors.PipeFailed)
    assert error.exit_code == 3
    assert "its output ends at byte 10, after the entry 'b'" in str(error)
    found, error = read_until_error("ark:head -c 9 a.ark; exit 3 |", pipes="allow")
    assert found == [("a", 1)]
    assert isinstance(error, sk.errors.PipeFailed)
    assert "key 'b'" in str(error)
    assert "byte 9" in str(error)
    with pytest.warns(sk.errors.KaldiWarning, match="exit code 3"):
        assert entries("ark,p:cat a.ark; exit 3 |", pipes="allow") == [("a", 1), ("b", 2)]
    with SequentialReader("ark:cat a.ark; exit 3 |", "int32", pipes="allow") as reader:
        assert reader.value == 1  # Closed before the end: the exit code does not matter.
    with pytest.raises(sk.errors.PipeRefused):
        SequentialReader("ark:make a.ark |", "int32")
    with pytest.raises(sk.errors.PipeRefused):
        SequentialReader("ark,p:make a.ark |", "int32")


def test_an_error_is_raised_while_the_stream_still_runs(here: Path) -> None:
    os.mkfifo(here / "pipe")
    raised, was_raised = threading.Event(), []

    def write() -> None:
        with open(here / "pipe", "wb", buffering=0) as file:
            file.write(b"a 1 \nb x \n")
            was_raised.append(raised.wait(60))

    writer = threading.Thread(target=write)
    writer.start()
    found, error = read_until_error("ark:cat pipe |")
    raised.set()
    writer.join()
    assert (found, type(error), was_raised) == ([("a", 1)], sk.errors.CorruptObject, [True])


def test_a_torn_compressed_archive_raises(here: Path) -> None:
    data = b"".join(b"u%d %d \n" % (n, n) for n in range(20_000))
    (here / "a.ark.gz").write_bytes(gzip.compress(data)[:-2000])
    found, error = read_until_error("ark:a.ark.gz")
    assert found == [(f"u{n}", n) for n in range(len(found))]
    assert 0 < len(found) < 20_000
    assert isinstance(error, sk.errors.UnsupportedFormat)
    assert "a.ark.gz" in str(error)


def test_the_cursor_works_as_that_of_kaldi(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 2 \nb 3 \n")
    (here / "a.scp").write_bytes(b"a a.ark:2\nb a.ark:9\n")
    for spec in ("ark:a.ark", "scp:a.scp", "ark,bg:a.ark", "scp,p:a.scp"):
        reader = SequentialReader(spec, "int32-vector")
        assert reader.is_open
        found = []
        while not reader.done:
            assert reader.value is reader.value
            found.append((reader.key, reader.value.tolist()))
            reader.next()
        assert found == [("a", [1, 2]), ("b", [3])]
        for use in (lambda: reader.key, lambda: reader.value, reader.next, reader.free_current):  # noqa: B023
            with pytest.raises(sk.errors.InvalidArgument, match="it is done"):
                use()
        assert list(reader) == []
        reader.close()
        reader.close()
        assert not reader.is_open
        for use in (lambda: reader.done, lambda: reader.key, reader.next, lambda: list(reader)):  # noqa: B023
            with pytest.raises(sk.errors.InvalidArgument, match="is closed"):
                use()


def test_iteration_goes_on_from_the_present_entry(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \nb 2 \nc 3 \n")
    with SequentialReader("ark:a.ark", "int32") as reader:
        for key, _ in reader:
            if key == "b":
                break
        assert reader.key == "b"
        assert list(reader) == [("b", 2), ("c", 3)]
        assert reader.done


def test_a_reader_that_is_closed_in_a_loop_says_so(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \nb 2 \nc 3 \n")
    reader = SequentialReader("ark:a.ark", "int32")
    loop = iter(reader)
    next(loop)
    reader.close()
    with pytest.raises(sk.errors.InvalidArgument, match="is closed"):
        next(loop)


def test_a_freed_object_is_read_again_from_a_script_alone(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \nb 2 \n")
    (here / "a.scp").write_bytes(b"a a.ark:2\nb a.ark:7\n")
    with SequentialReader("scp:a.scp", "int32") as reader:
        reader.free_current()
        assert (reader.key, reader.value) == ("a", 1)
    for spec in ("ark:a.ark", "ark,p:a.ark", "scp,bg:a.scp"):
        with SequentialReader(spec, "int32") as reader:
            reader.free_current()
            with pytest.raises(sk.errors.InvalidArgument, match="was freed"):
                _ = reader.value
            reader.next()
            assert reader.value == 2
    for spec in ("ark:a.ark", "ark,p:a.ark", "ark,bg:a.ark"):  # As in Kaldi, `next` alone may follow.
        with SequentialReader(spec, "int32") as reader:
            reader.free_current()
            for use in (lambda: reader.key, lambda: reader.done, lambda: next(iter(reader))):
                with pytest.raises(sk.errors.InvalidArgument, match="was freed"):
                    use()
            reader.next()
            assert (reader.done, reader.key) == (False, "b")
        with SequentialReader(spec, "int32") as reader:
            found = []
            for key, _ in reader:
                reader.free_current()
                found.append(key)
            assert (found, reader.done) == (["a", "b"], True)


def test_a_script_goes_on_behind_an_entry_that_cannot_be_read(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \nb 2 \n")
    (here / "a.scp").write_bytes(
        b"a a.ark:2\nm missing:4\nx a.ark:5\nbeyond a.ark:99\nmissing m\nv |bad\nb a.ark:7\n"
    )
    for spec in ("scp:a.scp", "scp,bg:a.scp"):
        with SequentialReader(spec, "int32") as reader:
            found = []
            while not reader.done:
                try:
                    found.append((reader.key, reader.value))
                except (sk.errors.CorruptTable, sk.DataNotFound) as error:
                    found.append((reader.key, type(error).__name__))
                reader.next()
        assert found == [
            ("a", 1),
            ("m", "DataNotFound"),
            ("x", "CorruptObject"),
            ("beyond", "CorruptTable"),
            ("missing", "DataNotFound"),
            ("v", "CorruptTable"),
            ("b", 2),
        ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert entries("scp,p:a.scp") == [("a", 1), ("b", 2)]
    assert sorted(str(each.message).split("entry ")[1][:4] for each in caught) == ["'bey", "'m':", "'x':"]
    good, reason = read_until_error("scp:a.scp")
    assert good == [("a", 1)]
    assert isinstance(reason, sk.DataNotFound)
    assert "'m'" in str(reason)
    assert "'missing'" in str(reason)


def test_lines_of_a_script_are_read_when_they_are_reached(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \n")
    (here / "a.scp").write_bytes(b"a a.ark:2\n" * 5_000 + b"\n")
    found, error = read_until_error("scp:a.scp")
    assert len(found) == 5_000
    assert "line 5,001 is empty" in str(error)
    with pytest.warns(sk.errors.KaldiWarning, match="the rest of the table.*line 5,001"):
        assert len(entries("scp,p:a.scp")) == 5_000


def test_commands_inside_a_script_need_their_own_permission(here: Path) -> None:
    (here / "a.scp").write_bytes(b"a echo 1 |\n")
    assert entries("scp:a.scp", pipes="allow") == [("a", 1)]
    for spec in ("scp:a.scp", "scp,p:a.scp"):
        for pipes in ("refuse", "specifier"):
            with pytest.raises(sk.errors.PipeRefused):
                entries(spec, pipes=pipes)
    assert entries("scp:true; cat a.scp |", pipes="allow") == [("a", 1)]
    with pytest.raises(sk.errors.PipeRefused):
        entries("scp:true; cat a.scp |", pipes="specifier")
    (here / "b.scp").write_bytes(b"a sh -c 'echo 1; exit 4' |\nb echo 2 |\n")
    _, error = read_until_error("scp:b.scp", pipes="allow")
    assert isinstance(error, sk.errors.PipeFailed)
    with pytest.warns(sk.errors.KaldiWarning, match="exit code 4"):
        assert entries("scp,p:b.scp", pipes="allow") == [("b", 2)]


def test_a_script_that_names_an_archive_without_offsets_says_so(here: Path) -> None:
    (here / "a.ark").write_bytes(b"utt1 " + dumped("matrix", np.eye(2, dtype="f4")))
    (here / "a.scp").write_bytes(b"utt1 a.ark\n")
    with pytest.raises(sk.errors.CorruptObject, match=r"the key 'utt1' of an archive.*'a.ark:5'.*ark:a.ark"):
        entries("scp:a.scp", "matrix")
    (here / "t.ark").write_bytes(b"utt1 [ 1 2 ]\nutt2 [ 3 4 ]\n")
    (here / "t.scp").write_bytes(b"utt1 t.ark\n")
    with pytest.raises(sk.errors.CorruptObject, match=r"'t\.ark:5'"):
        entries("scp:t.scp", "vector")


MATRIX = np.arange(60, dtype="f4").reshape(10, 6)


@pytest.mark.parametrize("form", ["FM", "CM", "CM2", "text", "gz", "pipe"])
def test_ranges_are_cut_from_every_form(form: str, here: Path) -> None:
    options = {"CM": {"method": 2}, "CM2": {"method": 3}}.get(form, {})
    holder = "compressed-matrix" if options else "matrix"
    data = dumped(holder, MATRIX, binary=form != "text", **options)
    name = {"gz": "m.gz", "pipe": "cat m |"}.get(form, "m")
    (here / "m").write_bytes(data)
    (here / "m.gz").write_bytes(gzip.compress(data))
    whole = find_holder("matrix").read(sk.kaldi.MemoryCursor(data))
    cuts = {"[0:9]": whole, "[2:4]": whole[2:5], "[3:3,1:4]": whole[3:4, 1:5], "[,2:3]": whole[:, 2:4]}
    cuts |= {"[:,0:0]": whole[:, :1], "[0:1]": whole[:2]}
    (here / "a.scp").write_text("".join(f"k {name}{cut}\n" for cut in cuts))
    for spec in ("scp:a.scp", "scp,bg:a.scp", "scp,p:a.scp"):
        assert [value for _, value in entries(spec, "matrix")] == [plain(cut) for cut in cuts.values()]
    with SequentialReader("scp:a.scp", "matrix") as reader:
        kept = [value for _, value in reader]
    kept[0][:] = -1
    assert plain(kept[1]) == plain(whole[2:5])
    (here / "b.scp").write_text(f"k {name}[8:11]\n")
    with pytest.warns(sk.errors.KaldiWarning, match="was clipped"):
        assert entries("scp:b.scp", "matrix") == [("k", plain(whole[8:]))]


@pytest.mark.parametrize("cut", ["[5:2]", "[0:99]", "[0:1,0:6]", "[]", "[a]", "[1:2][3:4]"])
@pytest.mark.parametrize("options", ["", ",p"])
def test_a_bad_range_raises_always_and_names_the_entry(cut: str, options: str, here: Path) -> None:
    (here / "m").write_bytes(dumped("matrix", MATRIX))
    (here / "a.scp").write_text(f"utt7 m{cut}\n")
    with pytest.raises(sk.errors.InvalidArgument, match="utt7"):
        entries(f"scp{options}:a.scp", "matrix")


def test_ranges_of_vectors_blobs_and_of_holders_without_ranges(here: Path) -> None:
    (here / "v").write_bytes(dumped("vector", np.arange(5, dtype="f4")))
    (here / "b").write_bytes(dumped("blob", b"abcdef"))
    (here / "i").write_bytes(dumped("int32-vector", np.arange(5, dtype="i4")))
    (here / "v.scp").write_bytes(b"k v[1:2]\nk cat v |[1:2]\n")
    (here / "b.scp").write_bytes(b"k b[1:2]\nk cat b |[1:2]\n")
    (here / "i.scp").write_bytes(b"k i[1:2]\n")
    assert [v for _, v in entries("scp:v.scp", "vector")] == [plain(np.array([1, 2], "f4"))] * 2
    assert [v for _, v in entries("scp:b.scp", "blob")] == [b"bc"] * 2
    with pytest.raises(sk.errors.InvalidArgument, match="int32-vector reads none"):
        entries("scp:i.scp", "int32-vector")


def test_a_range_reads_its_bytes_alone(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Writer("ark:a.ark", "matrix") as writer:
        writer.write("k", np.zeros((20_000, 100), "f4"))  # 8 MB
    (here / "a.scp").write_bytes(b"k a.ark:2[10000:10009]\n")
    read = []
    for name in ("pread", "preadv"):
        real = getattr(os, name)

        def counted(*args: Any, real: Any = real) -> Any:
            got = real(*args)
            read.append(got if isinstance(got, int) else len(got))
            return got

        monkeypatch.setattr(os, name, counted)
    assert entries("scp:a.scp", "matrix")[0][1][2] == (10, 100)
    assert sum(read) < 20_000


def test_one_command_is_run_for_consecutive_ranges_of_it(here: Path) -> None:
    (here / "m").write_bytes(dumped("matrix", MATRIX))
    (here / "a.scp").write_text("".join(f"k{n} echo x >> runs; cat m |[{n}:{n}]\n" for n in range(5)))
    assert [value[2] for _, value in entries("scp:a.scp", "matrix", pipes="allow")] == [(1, 6)] * 5
    assert (here / "runs").read_text() == "x\n"


def test_scripts_over_many_files_keep_few_open(here: Path) -> None:
    lines = []
    for number in range(30):
        (here / f"f{number}").write_bytes(b"k %d \n" % number)
        lines += [f"a{number} f{number}:2\n", f"b{number} f{number % 3}:2\n"]
    (here / "a.scp").write_text("".join(lines))
    with SequentialReader("scp:a.scp", "int32") as reader:
        before = len(os.listdir("/dev/fd"))
        values = [value for _, value in reader]
        assert len(os.listdir("/dev/fd")) <= before + 9
    assert values == [each for n in range(30) for each in (n, n % 3)]


def test_background_reading_ends_with_the_reader(here: Path) -> None:
    (here / "a.ark").write_bytes(b"".join(b"u%d %d \n" % (n, n) for n in range(1000)))
    before = set(threading.enumerate())
    with SequentialReader("ark,bg:a.ark", "int32") as reader:
        assert reader.key == "u0"
        assert set(threading.enumerate()) - before
    assert not set(threading.enumerate()) - before
    forgotten = SequentialReader("ark,bg:a.ark", "int32")
    del forgotten
    assert not set(threading.enumerate()) - before


class Step:
    """A holder of which each read waits until it is allowed."""

    name = "step"

    def __init__(self) -> None:
        self.allowed = threading.Semaphore(0)
        self.begun = threading.Semaphore(0)
        self.count = 0

    def read(self, cursor: Any) -> int:
        self.count += 1
        self.begun.release()
        self.allowed.acquire()
        if self.count == 4:
            raise ZeroDivisionError
        return int(cursor.through(b"\n"))

    def write(self, file: Any, value: Any, *, binary: bool) -> None:
        raise NotImplementedError

    skip = shape = read


def test_background_reading_is_one_entry_ahead_and_passes_any_error_on(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1\nb 2\nc 3\nd 4\n")
    step = Step()
    step.allowed.release()
    reader = SequentialReader("ark,bg:a.ark", step)  # type: ignore[arg-type]
    step.begun.acquire()
    step.begun.acquire()  # The second entry is read while the first one is present.
    assert (reader.key, reader.value, step.count) == ("a", 1, 2)
    for _ in range(3):
        step.allowed.release()
    reader.next()
    reader.next()
    assert (reader.key, reader.value) == ("c", 3)
    with pytest.raises(ZeroDivisionError):
        reader.next()
    reader.close()


def test_a_stream_is_not_shared_with_a_forked_process(here: Path) -> None:
    (here / "a.ark").write_bytes(b"".join(b"u%d %d \n" % (n, n) for n in range(10_000)))
    readers = {way: SequentialReader(way, "int32") for way in ("ark:cat a.ark |", "ark,bg:a.ark")}
    plain_reader = SequentialReader("ark:a.ark", "int32")
    child = os.fork()
    if not child:
        status = 1
        try:
            for reader in readers.values():
                with pytest.raises(sk.errors.ForkUnsafe):
                    for _ in reader:
                        pass
            status = 0 if len(list(plain_reader)) == 10_000 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for reader in [*readers.values(), plain_reader]:
        assert sum(1 for _ in reader) == 10_000
        reader.close()


def test_wrong_arguments(here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \n")
    with pytest.raises(sk.errors.InvalidArgument, match="is not an rspecifier"):
        SequentialReader("a.ark", "int32")
    with pytest.raises(sk.errors.InvalidArgument, match="is not an rspecifier"):
        SequentialReader("ark,scp:a.ark,b", "int32")
    with pytest.raises(sk.errors.InvalidArgument, match="holder must be one of"):
        SequentialReader("ark:a.ark", "int31")
    with pytest.raises(sk.errors.InvalidArgument, match="no meaning"):
        SequentialReader("ark:a.ark", "int32", method=2)
    with pytest.raises(sk.errors.InvalidArgument, match="pipes must be"):
        SequentialReader("ark:a.ark", "int32", pipes="yes")  # type: ignore[arg-type]
    with pytest.raises(sk.errors.WrongType, match="rspecifier must be a str"):
        SequentialReader(5, "int32")  # type: ignore[arg-type]


@given(
    st.lists(
        st.tuples(
            st.text("ab\xe9\u3000~!", min_size=1, max_size=300),
            st.lists(st.integers(-(2**31), 2**31 - 1), max_size=9),
            st.booleans(),
            st.sampled_from([b"", b" ", b"\n", b"\t \r\n"]),
        ),
        max_size=8,
    ),
    st.sampled_from(["", "cat "]),
)
def test_any_archive_is_the_list_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, list[int], bool, bytes]], program: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.ark"
    data = b"".join(
        space + key.encode() + b" " + dumped("int32-vector", np.array(value, "i4"), binary=binary)
        for key, value, binary, space in table
    )
    path.write_bytes(data)
    spec = f"ark:{program}{path}{' |' if program else ''}"
    with SequentialReader(spec, "int32-vector") as reader:
        assert [(key, value.tolist()) for key, value in reader] == [(k, v) for k, v, _, _ in table]


PIECES = [
    b"a ",
    b"b 1 \n",
    b"\0B",
    b"\4",
    b"\xff\xff\xff\x7f",
    b"\0\0\0\0",
    b"[ 1 2 ]\n",
    b"FM ",
    b"CM ",
    b"RIFF",
    b"SM ",
]


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=12).map(b"".join))
def test_any_bytes_are_entries_or_an_error_in_bounded_memory(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.ark"
    path.write_bytes(b"k " + data)
    for holder in holder_names():
        for spec in (f"ark:{path}", f"ark:cat {path} |"):
            with contextlib.suppress(sk.errors.CorruptTable), SequentialReader(spec, holder) as reader:
                assert sum(1 for _ in reader) <= len(data) + 1


def test_bytes_that_are_no_text_are_keys(here: Path) -> None:
    (here / "a.ark").write_bytes(b"\xe9\xfe " + b"\0B" + i32(4))
    assert entries("ark:a.ark") == [("\udce9\udcfe", 4)]


class OneByOne:
    """A holder that does what another does, without a way to read many entries at once."""

    def __init__(self, name: str) -> None:
        holder: Any = find_holder(name)
        self.name, self.read, self.write = holder.name, holder.read, holder.write
        self.skip, self.shape = holder.skip, holder.shape


def is_read_as_one_by_one(data: bytes, name: str, path: Path) -> None:
    path.write_bytes(data)
    runs, one_by_one = (read_until_error(f"ark:{path}", holder) for holder in (name, OneByOne(name)))
    assert repr(runs) == repr(one_by_one)


@pytest.mark.parametrize("name", [*BASIC_TYPES, "token", "vector", "double-vector"])
def test_runs_of_small_entries_end_at_any_byte_as_single_ones_do(name: str, here: Path) -> None:
    value: Any = {"token": "w\u00e9"}.get(name, [1.5, 32.0] if name.endswith("vector") else 66)
    data = b"".join(key + dumped(name, value) for key in (b"a ", b"\n b2\t", b"\xe2\x82 ", b"\xff ", b"c "))
    for cut in range(len(data) + 1):
        is_read_as_one_by_one(data[:cut], name, here / "a.ark")


NUMBER, WORD, VECTOR = dumped("int32", 5), b"speaker\n", dumped("vector", [0.5, 2.0])
RUN_PIECES = st.sampled_from(
    [b"a ", b"\xc3\xa9\t", b"b\n", b" \n", b"\0B", b"\4", b"5 \n", b"w \r\n", b"x" * 70 + b"\n"]
)


@given(
    st.lists(
        st.tuples(st.binary(min_size=1, max_size=3) | st.just(b"key"), st.sampled_from([b" ", b"\t"]))
        .map(b"".join)
        .flatmap(lambda key: st.sampled_from([key + NUMBER, key + WORD, key + VECTOR]))
        | RUN_PIECES,
        max_size=9,
    ).map(b"".join),
    st.sampled_from([0, 300, 9000]),
)
def test_runs_of_small_entries_are_those_of_single_ones(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, before: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "runs.ark"
    for name, entry in (("int32", NUMBER), ("float", NUMBER), ("token", WORD), ("vector", VECTOR)):
        is_read_as_one_by_one(b"".join(b"k%d %b" % (n, entry) for n in range(before)) + data, name, path)
