"""Tables read by key: the answers of each option, what raises, what is kept in memory, and indexes."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kaldi.holder_cases import TABLE_CASES, TABLE_IDS, Case, dumped, plain
from tests.kaldi.test_dataset import matrices, write_table
from tests.thrift import turns

import seekable as sk
from seekable.formats.kaldi.tables.key_tables import find_table_index, hash_of_key, keys_of_block, load_script
from seekable.kaldi import MappedReader, RandomAccessReader, Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(folder: Path, keys: str, name: str = "a") -> None:
    """An archive of the places of some keys, which have one letter each, and its script."""
    archive, script = b"", b""
    for number, key in enumerate(keys):
        script += b"%s %s.ark:%d\n" % (key.encode(), name.encode(), len(archive) + 2)
        archive += b"%s %d \n" % (key.encode(), number)
    (folder / f"{name}.ark").write_bytes(archive)
    (folder / f"{name}.scp").write_bytes(script)


@pytest.mark.parametrize("spec", ["ark:a.ark", "ark,s:a.ark", "ark:cat a.ark |", "scp:a.scp", "scp,p:a.scp"])
def test_entries_are_found_by_their_keys(spec: str, here: Path) -> None:
    made(here, "abc")
    with RandomAccessReader(spec, "int32") as reader:
        assert reader["b"] == 1
        assert "bb" not in reader
        assert "a" in reader
        assert (reader["c"], reader["a"]) == (2, 0)
        with pytest.raises(sk.errors.KeyNotFound, match="'d'"):
            reader["d"]


BY_KEY = ("ark:a.ark", "ark:cat a.ark |", "ark,s,cs:a.ark", "ark,p:a.ark", "scp:a.scp", "scp,p:a.scp")


@pytest.mark.parametrize(
    ("case", "specs"),
    [*zip(TABLE_CASES, turns(BY_KEY, len(TABLE_CASES)), strict=True)],
    ids=TABLE_IDS,
)
def test_every_holder_is_read_by_key(case: Case, specs: list[str], here: Path) -> None:
    archive, script = b"", b""
    for number in range(3):
        archive += b"k%d " % number
        script += b"k%d a.ark:%d\n" % (number, len(archive))
        archive += dumped(case.holder, case.value)
    (here / "a.ark").write_bytes(archive)
    (here / "a.scp").write_bytes(script)
    for spec in specs:
        with RandomAccessReader(spec, case.holder) as reader:
            for key in ("k0", "k2") if "s" in spec.partition(":")[0].split(",") else ("k2", "k0", "k1"):
                assert key in reader
                assert plain(reader[key]) == plain(case.value), spec
                assert "s,cs" in spec or plain(reader[key]) == plain(case.value), spec


SPECS = [
    *("ark", "ark,o", "ark,s", "ark,s,o", "ark,s,cs", "ark,cs", "ark,p", "ark,s,p"),
    *("scp", "scp,s", "scp,o", "scp,cs", "scp,p"),
]
QUESTIONS = [("has", "a"), ("get", "a"), ("has", "b"), ("has", "e"), ("get", "c"), ("has", "a"), ("get", "e")]
FINE = [True, 0, False, True, 1, True, 2]
SECOND_A = [True, 0, *["CorruptTable"] * 5]
UNSORTED = [False, "KeyNotFound", False, *["CorruptTable"] * 4]

ANSWERS: dict[tuple[str, str], list[Any] | str] = {
    **{(spec, "ace"): FINE for spec in SPECS},
    **{(spec, "cae"): [True, 1, False, True, 0, True, 2] for spec in SPECS},
    **{(spec, "aca"): SECOND_A for spec in SPECS},
    **{(spec, "cae"): ["CorruptTable"] * 7 for spec in SPECS if spec.startswith("ark,s")},
    **{(spec, "ace"): [True, 0, False, True, 1, "InvalidArgument", 2] for spec in ("ark,o", "ark,s,o")},
    ("ark,o", "cae"): [True, 1, False, True, 0, "InvalidArgument", 2],
    ("ark,s,cs", "ace"): [True, 0, False, True, "InvalidArgument", "InvalidArgument", 2],
    **{(spec, "aca"): "CorruptTable" for spec in SPECS if spec.startswith("scp")},
    ("scp,s", "cae"): "CorruptTable",
}
"""The answers of each kind of table to the questions: the 39 cells. A text is the error of opening it."""

OF_STREAMS: dict[tuple[str, str], list[Any]] = {
    **{(spec, "cae"): UNSORTED for spec in SPECS if spec.startswith("ark,s")},
    # The violation lies behind the key "c", which ends the search for "b".
    **{(spec, "aca"): [True, 0, False, *["CorruptTable"] * 4] for spec in SPECS if spec.startswith("ark,s")},
}
"""Other answers of archives that come from a pipe, where nobody waits for the entry behind a higher key."""

STRICTER = {"aca": "the reader stays in its error", "cae": "the reader stays in its error"}
"""Where Kaldi answers on behind an error, or does not notice it."""


def answers(make: Callable[[], Any]) -> list[Any] | str:
    try:
        reader = make()
    except Exception as error:  # noqa: BLE001 - the name of any error is the answer
        return type(error).__name__
    found: list[Any] = []
    for question, key in QUESTIONS:
        try:
            found.append(key in reader if question == "has" else reader[key])
        except Exception as error:  # noqa: BLE001 - the name of any error is the answer
            found.append(type(error).__name__)
    reader.close()
    return found


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the peer's destructors
@pytest.mark.parametrize("keys", ["ace", "cae", "aca"])
@pytest.mark.parametrize("spec", SPECS)
def test_the_answers_of_every_option(spec: str, keys: str, here: Path) -> None:
    made(here, keys)
    expected = ANSWERS[spec, keys]
    assert answers(lambda: RandomAccessReader(f"{spec}:a.{spec[:3]}", "int32")) == expected
    of_stream = answers(lambda: RandomAccessReader(f"{spec}:cat a.{spec[:3]} |", "int32"))
    assert of_stream == OF_STREAMS.get((spec, keys), expected)
    kn = pytest.importorskip("kaldi_native_io")
    theirs = answers(lambda: kn.RandomAccessInt32Reader(f"{spec}:a.{spec[:3]}"))
    assert isinstance(theirs, str) == isinstance(expected, str)
    if keys not in STRICTER and not isinstance(theirs, str):
        assert [each for each in theirs if each != "RuntimeError"] == [
            each for each in expected if not isinstance(each, str)
        ]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_tables_of_any_size(count: int) -> None:
    with Writer("ark,scp:a.ark,a.scp", "int32-vector") as writer:
        for number in range(count):
            writer.write(f"u{number}", list(range(number % 5)))
    for spec in ("ark:a.ark", "ark:cat a.ark |", "scp:a.scp", "scp:cat a.scp |"):
        with RandomAccessReader(spec, "int32-vector") as reader:
            for number in np.random.default_rng(0).permutation(count):
                assert len(reader[f"u{number}"]) == number % 5
            assert "u" not in reader
            assert f"u{count}" not in reader


def test_a_key_is_found_before_the_archive_ends(here: Path) -> None:
    os.mkfifo(here / "pipe")
    heard = threading.Event()

    def write() -> None:
        with open(here / "pipe", "wb", buffering=0) as file:
            file.write(b"a 1 \nc 3 \n")
            heard.wait(60)

    writer = threading.Thread(target=write)
    writer.start()
    with RandomAccessReader("ark,s:pipe", "int32") as reader:
        assert reader["a"] == 1
        assert "b" not in reader
        assert reader["c"] == 3
        heard.set()
        assert "d" not in reader
    writer.join()


DAMAGED = [b"b x \n", b"b", b"b \0B\4\1\0", b"\x01"]


@pytest.mark.parametrize("rest", DAMAGED, ids=repr)
@pytest.mark.parametrize("way", ["ark:a.ark", "ark:cat a.ark |", "ark,s:a.ark"])
def test_damage_raises_behind_the_good_entries(rest: bytes, way: str, here: Path) -> None:
    (here / "a.ark").write_bytes(b"a 1 \n" + rest)
    with RandomAccessReader(way, "int32") as reader:
        assert reader["a"] == 1
        for _ in range(2):
            with pytest.raises(sk.errors.CorruptTable, match=r"a\.ark.*byte"):
                reader["c"]
        assert reader["a"] == 1
    with RandomAccessReader(way.replace("ark", "ark,p", 1), "int32") as reader:
        with pytest.warns(sk.errors.KaldiWarning, match="the rest of the archive") as caught:
            assert "b" not in reader
        assert len(caught) == 1
        assert reader["a"] == 1
        assert "c" not in reader


def test_a_failed_command_is_no_missing_key(here: Path) -> None:
    made(here, "ab")
    with RandomAccessReader("ark:cat a.ark; exit 3 |", "int32", pipes="allow") as reader:
        assert reader["b"] == 1
        with pytest.raises(sk.errors.PipeFailed):
            _ = "c" in reader
        assert reader["a"] == 0
    with RandomAccessReader("ark,p:cat a.ark; exit 3 |", "int32", pipes="allow") as reader:
        with pytest.warns(sk.errors.KaldiWarning, match="exit code 3"):
            assert "c" not in reader
        assert "d" not in reader
    with pytest.raises(sk.errors.PipeFailed):
        RandomAccessReader("scp:cat a.scp; exit 3 |", "int32", pipes="allow")
    with pytest.raises(sk.errors.PipeRefused):
        RandomAccessReader("ark:make |", "int32")


def test_lines_that_cannot_be_read(here: Path) -> None:
    made(here, "ab")
    (here / "b.scp").write_bytes(
        b"gone none:5\nbad a.ark:5\nfar a.ark:99\nname |x\na a.ark:2\nrun echo 7 |\nfail echo 7; exit 2 |\n"
    )
    expected: dict[str, Any] = {
        "gone": sk.DataNotFound,
        "bad": sk.errors.CorruptObject,
        "far": sk.errors.CorruptTable,
        "name": sk.errors.CorruptTable,
        "fail": sk.errors.PipeFailed,
    }
    with RandomAccessReader("scp:b.scp", "int32", pipes="allow") as reader:
        for key, error in expected.items():
            assert key in reader
            with pytest.raises(error, match=rf"key '{key}'|the entry '{key}' of 'b\.scp'"):
                reader[key]
        assert (reader["a"], reader["run"]) == (0, 7)
    with RandomAccessReader("scp,p:b.scp", "int32", pipes="allow") as reader:
        with pytest.warns(sk.errors.KaldiWarning, match="option p leaves out the entry"):
            assert [key for key in expected if key in reader] == []
        for key in expected:
            with pytest.raises(sk.errors.KeyNotFound, match="that can be read"):
                reader[key]
        assert "a" in reader
        assert (reader["a"], reader["run"]) == (0, 7)
    with RandomAccessReader("scp,p:b.scp", "int32") as reader, pytest.raises(sk.errors.PipeRefused):
        _ = "run" in reader


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"a x\n\nb y\n", "line 2 is empty"),
        (b"a x\nb\n", "line 2 has a key and no filename"),
        (b"a x\nb \t \n", "line 2 has a key and no filename"),
        (b"a x\n\x01b x\n", "line 2 has a key with control characters"),
        (b"a x\nb x\nc\0 x\n", "line 3"),
        (b"a x\n\xff x\n", "line 2 has a key with control characters"),
        (b"a x\nb x\na y\n", "key 'a' is there twice, at byte 0 and at byte 8"),
        (b"\0BFM ", "binary object"),
    ],
)
def test_a_script_with_a_bad_line_is_refused(text: bytes, problem: str, here: Path) -> None:
    (here / "a.scp").write_bytes(text)
    for spec in ("scp:a.scp", "scp,p:a.scp", "scp:cat a.scp |"):
        with pytest.raises(sk.errors.CorruptTable, match=problem):
            RandomAccessReader(spec, "matrix")


def test_scripts_of_odd_forms(here: Path) -> None:
    long = "k" * 1000
    (here / "a.scp").write_bytes(f" a \t x 1 \r\nb\ty\r\n{long} z\n\u00e9\u3000 f\n".encode() + b"\xe9 g")
    table = load_script("a.scp", is_sorted=False, pipes="refuse")
    assert len(table) == 5
    keys = ["a", "b", long, "\u00e9\u3000", "\udce9"]
    assert [table.find(key) for key in keys] == ["x 1", "y", "z", "f", "g"]
    assert [table.find(key) for key in ("A", "bb", long[1:], "")] == [None] * 4
    (here / "a.scp").write_bytes(b"")
    assert load_script("a.scp", is_sorted=True, pipes="refuse").find("a") is None


def test_a_long_script_stays_on_disk(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"".join(b"utt%06d %s:%d\n" % (n * 7919 % 10_007, b"x" * (n % 900), n) for n in range(5000))
    (here / "a.scp").write_bytes(text)
    lines = dict(line.split(" ") for line in text.decode().splitlines())
    kept = load_script("a.scp", is_sorted=False, pipes="refuse")
    monkeypatch.setattr("seekable.formats.kaldi.tables.key_tables._KEPT_BYTES", 0)
    monkeypatch.setattr("seekable.formats.kaldi.tables.key_tables._BLOCK_BYTES", 10_000)
    on_disk = load_script("a.scp", is_sorted=False, pipes="refuse")
    for table in (kept, on_disk):
        assert {key: table.find(key) for key in lines} == lines
    (here / "a.scp").write_bytes(text.replace(b"utt", b"abc"))
    with pytest.raises(sk.errors.CorruptTable, match="was changed"):
        on_disk.find("utt000000")


@given(
    st.lists(st.binary(min_size=1, max_size=40).map(lambda raw: raw.hex()[: len(raw)].encode()), min_size=1)
)
def test_keys_of_a_block_are_hashed_and_ordered_as_one_by_one(keys: list[bytes]) -> None:
    block = b"".join(key + b" x\n" for key in keys)
    found = keys_of_block(block, 1, "demo")
    assert found.hashes.tolist() == [hash_of_key(key) for key in keys]
    assert [block[start:].split()[0] for start in found.starts.tolist()] == keys
    disorder = [at for at in range(1, len(keys)) if keys[at] <= keys[at - 1]]
    assert found.disorder == (disorder[0] if disorder else None)
    assert (found.first, found.last) == (keys[0], keys[-1])


def test_option_s_of_a_script_looks_at_all_lines(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seekable.formats.kaldi.tables.key_tables._BLOCK_BYTES", 64)
    keys = [f"utterance-{n:05d}" for n in range(200)]
    for at in (0, 1, 100, 198, None):
        order = list(keys)
        if at is not None:
            order[at], order[at + 1] = order[at + 1], order[at]
        (here / "a.scp").write_text("".join(f"{key} x\n" for key in order))
        if at is None:
            assert RandomAccessReader("scp,s:a.scp", "int32").is_open
        else:
            with pytest.raises(sk.errors.CorruptTable, match=f"the key of line {at + 2} does not follow"):
                RandomAccessReader("scp,s:a.scp", "int32")
            RandomAccessReader("scp:a.scp", "int32").close()


@pytest.mark.usefixtures("here")
def test_views_of_a_file_are_read_only_and_outlive_the_reader() -> None:
    values = {f"u{n}": np.full((50, 8), n, "f4") for n in range(5)}
    with Writer("ark,scp:a.ark,a.scp", "matrix") as writer:
        for key, value in values.items():
            writer.write(key, value)
    with RandomAccessReader("scp:a.scp", "matrix") as reader:
        found = {key: reader[key] for key in values}
        with pytest.raises(ValueError, match="read-only"):
            found["u1"] += 1
    os.unlink("a.ark")
    assert plain(list(found.values())) == plain(list(values.values()))


def test_objects_of_archives_are_the_callers_own(here: Path) -> None:
    with Writer("ark:a.ark", "matrix") as writer:
        writer.write("a", np.ones((2, 2), "f4"))
    (here / "p.ark").write_bytes(b"a " + dumped("posterior", [[(1, 0.5)]]))
    for spec in ("ark:a.ark", "ark:cat a.ark |"):
        with RandomAccessReader(spec, "matrix") as reader:
            reader["a"][:] = 5
            assert reader["a"].tolist() == [[1, 1], [1, 1]]
    with RandomAccessReader("ark:cat p.ark |", "posterior") as reader:
        reader["a"].clear()
        assert reader["a"] == [[(1, 0.5)]]


def test_a_file_that_is_cut_while_it_is_open_raises(here: Path) -> None:
    with Writer("ark,scp:a.ark,a.scp", "matrix") as writer:
        for number in range(5):
            writer.write(f"u{number}", np.full((1000, 8), number, "f4"))
    for spec in ("scp:a.scp", "ark:a.ark"):
        data = (here / "a.ark").read_bytes()
        with RandomAccessReader(spec, "matrix") as reader:
            assert reader["u0"][0, 0] == 0
            os.truncate(here / "a.ark", 40_000)
            with pytest.raises(sk.errors.CorruptTable):
                reader["u4"]
            (here / "a.ark").write_bytes(data)
            if spec.startswith("scp"):
                assert reader["u4"][0, 0] == 4
        (here / "a.ark").write_bytes(data)


def test_an_archive_that_grows_is_read_as_it_is(here: Path) -> None:
    made(here, "ab")
    script = (here / "a.scp").read_bytes()
    (here / "a.scp").write_bytes(script + b"c a.ark:12\n")
    with RandomAccessReader("scp:a.scp", "int32") as reader:
        assert reader["a"] == 0
        with pytest.raises(sk.errors.CorruptTable):
            reader["c"]
        with open(here / "a.ark", "ab") as file:
            file.write(b"c 2 \n")
        assert reader["c"] == 2


@pytest.mark.usefixtures("here")
def test_threads_and_forked_processes_share_a_reader() -> None:
    with Writer("ark,scp:a.ark,a.scp", "matrix") as writer:
        for number in range(300):
            writer.write(f"u{number}", np.full((20, 3), number, "f4"))
    for spec in ("scp:a.scp", "ark:a.ark", "ark:cat a.ark |"):
        reader = RandomAccessReader(spec, "matrix")
        wrong: list[Any] = []

        def look(seed: int, reader: RandomAccessReader = reader, wrong: list[Any] = wrong) -> None:
            order = np.random.default_rng(seed).permutation(300)
            wrong.extend(number for number in order if (reader[f"u{number}"] != number).any())

        threads = [threading.Thread(target=look, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        child = os.fork()
        if not child:
            status = 1
            try:
                look(9)
                status = len(wrong)
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        reader.close()


def test_a_stream_is_not_read_on_in_a_forked_process(here: Path) -> None:
    (here / "a.ark").write_bytes(b"".join(b"u%d %d \n" % (n, n) for n in range(20_000)))
    reader = RandomAccessReader("ark:cat a.ark |", "int32")
    assert reader["u7"] == 7
    child = os.fork()
    if not child:
        status = 1
        try:
            assert reader["u7"] == 7
            with pytest.raises(sk.errors.ForkUnsafe):
                reader["u19999"]
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert reader["u19999"] == 19_999
    reader.close()


MEMORY = """
import sys, tracemalloc
from seekable.kaldi import RandomAccessReader
for spec in sys.argv[1:]:
    with RandomAccessReader(spec, "matrix") as reader:
        reader["u00"]  # imports what is imported late
    with RandomAccessReader(spec, "matrix") as reader:
        tracemalloc.start()
        for number in range(20):
            reader[f"u{number:02d}"]
        print(tracemalloc.get_traced_memory()[1] // 100_000)
        tracemalloc.stop()
"""


def test_what_is_kept_in_memory(here: Path) -> None:
    with Writer("ark:a.ark", "matrix") as writer:
        for number in range(20):
            writer.write(f"u{number:02d}", np.zeros((250, 100), "f4"))  # 100,000 bytes
    all_of_them = {"ark": True, "ark,s": True, "ark,cs": True}
    all_of_them |= {"ark,o": False, "ark,s,o": False, "ark,s,cs": False}
    specs = [f"{options}:{name}" for options in all_of_them for name in ("cat a.ark |", "a.ark")]
    command = [sys.executable, "-c", MEMORY, *specs]
    found = subprocess.run(command, check=True, capture_output=True, cwd=here, text=True).stdout.split()
    for spec, objects in zip(specs, map(int, found), strict=True):
        keeps_all = "|" in spec and all_of_them[spec.partition(":")[0]]
        assert (20 <= objects <= 23) if keeps_all else objects <= 3, spec


def test_gaps_are_kept_with_option_o_and_not_with_cs(here: Path) -> None:
    made(here, "abcdef")
    for spec, kept in (("ark,o", "bcde"), ("ark,s,cs", ""), ("ark", "abcdef"), ("ark,s,o", "bcde")):
        with RandomAccessReader(f"{spec}:cat a.ark |", "int32") as reader:
            assert [reader["a"], reader["f"]] == [0, 5]
            lookup: Any = reader._lookup
            assert set(lookup._kept) - {"f"} == set(kept) - {"f"}


def test_a_table_with_an_index_is_not_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Writer("ark,scp:a.ark,a.scp", "matrix") as writer:
        for number in range(50):
            writer.write(f"u{number}", np.full((3, 2), number, "f4"))
    sk.open("ark:a.ark", format=sk.formats.Kaldi(holder="matrix")).key("u0")
    sk.open("scp:a.scp", format=sk.formats.Kaldi(holder="matrix")).key("u0")
    for name in ("load_script", "_ArchiveLookup"):
        monkeypatch.delattr(f"seekable.formats.kaldi.tables.random_access.{name}")
    for spec in ("ark:a.ark", "scp:a.scp", "scp,p:a.scp", "scp,cs:a.scp"):
        with RandomAccessReader(spec, "matrix") as reader:
            assert [reader[key][0, 0] for key in ("u49", "u0", "u7")] == [49, 0, 7]
            assert "u50" not in reader
            with pytest.raises(sk.errors.KeyNotFound):
                reader["u"]
    monkeypatch.undo()
    monkeypatch.chdir(here)
    for spec in ("ark:a.ark", "scp:a.scp"):
        with open(spec[4:], "ab") as file:
            file.write(b"v " + (dumped("matrix", np.ones((1, 1))) if "ark:" in spec else b"a.ark:3\n"))
        with RandomAccessReader(spec, "matrix") as reader:
            assert "v" in reader


def test_a_script_behind_an_offset_is_read_by_key(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(here, "abc")
    first, *others = (here / "a.scp").read_bytes().splitlines(keepends=True)
    (here / "b.scp").write_bytes(bytes(len(first)) + b"".join(others))
    for kept_bytes in (1 << 20, 0):
        monkeypatch.setattr("seekable.formats.kaldi.tables.key_tables._KEPT_BYTES", kept_bytes)
        with RandomAccessReader(f"scp:b.scp:{len(first)}", "int32") as reader:
            assert ("a" in reader, reader["b"], reader["c"]) == (False, 1, 2)


def test_a_file_without_lines_is_no_script_and_is_not_read_to_its_end(here: Path) -> None:
    with (here / "b.scp").open("wb") as file:
        file.write(b"a ")
        file.truncate(1 << 40)
    with pytest.raises(sk.errors.CorruptTable, match="line 1 is longer than 1,048,576 bytes"):
        RandomAccessReader("scp:b.scp", "int32")


@pytest.mark.filterwarnings("ignore::seekable.errors.DuplicateKeys", "ignore::seekable.errors.KaldiWarning")
@pytest.mark.parametrize(
    ("spec", "data"),
    [
        ("ark:t", b"a 1 \nb 2 \nc x \nd 4 \n"),
        ("ark,p:t", b"a 1 \nb 2 \nc x \nd 4 \n"),
        ("ark:t", b"a 1 \nb 2 \n\xff\xff c 3 \n"),
        ("ark:t", b"a 1 \nb \0B\4\2\0"),
        ("ark:t", b"b 1 \na 2 \nb 3 \nc 4 \n"),
        ("scp:t", b"a v:0\nb v\0\nc v:0\n"),
        ("scp:t", b"a v:0\nb\x01 v:0\nc v:0\n"),
        ("scp,p:t", b"a v:0\n\nc v:0\n"),
        ("scp:t", b"a v:0\nb\n"),
        ("scp:t", b"a v:0\nb v:0\na v:9\n"),
    ],
)
def test_an_index_changes_no_answer(here: Path, spec: str, data: bytes) -> None:
    (here / "v").write_bytes(b"7 ")
    (here / "t").write_bytes(data)

    without = answers_of(spec)
    sk.open(f"{spec[:3]}:t", format=sk.formats.Kaldi(holder="int32"))
    assert answers_of(spec) == without
    assert any(isinstance(each, str) for each in without)


def answers_of(spec: str) -> list[object]:
    """What a reader answers of some keys, each asked of a new one."""
    found: list[object] = []
    for key in "abcdz":
        for ask in ("__contains__", "__getitem__"):
            try:
                with RandomAccessReader(spec, "int32") as reader:
                    found.append(getattr(reader, ask)(key))
            except sk.SeekableError as error:
                found.append(f"{type(error).__name__}: {error}")
    return found


@pytest.mark.parametrize(
    ("spec", "data", "place"),
    [
        ("ark:t", b"a 1 \nb 2 \n\xff\xff c 3 \n", "record 2 at byte 10"),
        ("ark:t", b"a 1 \nb \0B\4\2\0", "record 1 at byte 5"),
        ("scp:t", b"a v:0\n\nc v:0\n", "record 1 at byte 6"),
    ],
)
def test_a_key_that_damage_may_hide_is_not_said_to_be_missing(
    here: Path, spec: str, data: bytes, place: str
) -> None:
    (here / "v").write_bytes(b"7 ")
    (here / "t").write_bytes(data)
    ds = sk.open(spec, format=sk.formats.Kaldi(holder="int32"))
    keys = ds.keys()
    assert "a" in keys
    for ask in (ds.key, keys.__contains__, ds.shuffle(1, fixed=True).key):
        with pytest.raises(sk.CorruptRecord, match=place):
            ask("z")
    left_out = sk.open(spec, format=sk.formats.Kaldi(holder="int32"), errors=lambda _: sk.HOLE)
    keys = left_out.keys()
    assert "z" not in keys
    with pytest.raises(sk.errors.KeyNotFound, match="and 1 records that were left out"):
        left_out.key("z")


def test_wrong_keys_and_arguments(here: Path) -> None:
    made(here, "ab")
    for spec in ("ark:a.ark", "scp:a.scp"):
        reader = RandomAccessReader(spec, "int32")
        for key in ("", "a b", "a\n", "\x01", "\x7f", "\ud800"):
            with pytest.raises(sk.errors.InvalidArgument, match="key must be a word"):
                _ = key in reader
        for wrong in (5, None, b"a", ["a"]):
            with pytest.raises(sk.errors.WrongType, match="key must be a str"):
                reader[wrong]  # type: ignore[index]
        assert reader.is_open
        reader.close()
        reader.close()
        assert not reader.is_open
        with pytest.raises(sk.errors.InvalidArgument, match="is closed"):
            reader["a"]
        with pytest.raises(sk.errors.InvalidArgument, match="is closed"):
            _ = "a" in reader
    with pytest.raises(sk.DataNotFound):
        RandomAccessReader("ark:none", "int32")
    with pytest.raises(sk.errors.InvalidArgument, match="is not an rspecifier"):
        RandomAccessReader("none", "int32")


def test_ranges_by_key(here: Path) -> None:
    matrix = np.arange(60, dtype="f4").reshape(10, 6)
    (here / "m").write_bytes(dumped("matrix", matrix))
    (here / "m.gz").write_bytes(gzip.compress(dumped("matrix", matrix)))
    (here / "a.scp").write_text(
        "".join(f"{k}{n} {f}[{n}:{n},1:2]\n" for n in range(9) for k, f in ("am", ("b", "m.gz")))
    )
    with RandomAccessReader("scp:a.scp", "matrix") as reader:
        for key in ("a3", "b3", "b4", "a0", "b3"):
            row = int(key[1])
            assert plain(reader[key]) == plain(matrix[row : row + 1, 1:3])
    (here / "b.scp").write_text("a m[0:20]\n")
    for spec in ("scp:b.scp", "scp,p:b.scp"):
        with (
            RandomAccessReader(spec, "matrix") as reader,
            pytest.raises(sk.errors.InvalidArgument, match="'a'"),
        ):
            reader["a"]


@given(
    st.lists(st.sampled_from("abcdefgh"), unique=True),
    st.lists(st.tuples(st.booleans(), st.sampled_from("abcdefghi"))),
    st.sampled_from(["", ",o", ",s", ",s,o", ",s,cs", ",cs", ",p"]),
    st.booleans(),
)
def test_any_archive_is_the_dictionary_of_its_entries(
    tmp_path_factory: pytest.TempPathFactory,
    keys: list[str],
    questions: list[tuple[bool, str]],
    options: str,
    is_stream: bool,  # noqa: FBT001 - hypothesis passes it
) -> None:
    keys = sorted(keys) if ",s" in options else keys
    folder = tmp_path_factory.getbasetemp()
    made(folder, "".join(keys), "any")
    path = f"cat {folder}/any.ark |" if is_stream else f"{folder}/any.ark"
    used: set[str] = set()
    asked = ""
    with RandomAccessReader(f"ark{options}:{path}", "int32") as reader, warnings.catch_warnings():
        for is_value, key in questions:
            is_once = ",o" in options
            if (is_once and key in used) or (",s,cs" in options and key < asked):
                with pytest.raises(sk.errors.InvalidArgument):
                    _ = reader[key] if is_value else key in reader
                continue
            asked = key
            if not is_value:
                assert (key in reader) == (key in keys)
            elif key in keys:
                assert reader[key] == keys.index(key)
                used.add(key)
            else:
                with pytest.raises(sk.errors.KeyNotFound):
                    reader[key]


def test_keys_are_translated(tmp_path: Path) -> None:
    (tmp_path / "spk").write_bytes(b"s1 1\ns2 2\n")
    (tmp_path / "map").write_bytes(b"u1 s2\nu2 s1\nu3 s2\nu4 s3\n")
    with MappedReader(f"ark:{tmp_path}/spk", f"ark:{tmp_path}/map", "int32") as reader:
        assert [reader[key] for key in ("u1", "u2", "u3")] == [2, 1, 2]
        assert "u1" in reader
        assert "u4" not in reader
        for use in (reader.__contains__, reader.__getitem__):
            with pytest.raises(sk.errors.KeyNotFound, match="the map"):
                use("u5")


def test_without_a_map_it_is_a_plain_reader(tmp_path: Path) -> None:
    (tmp_path / "spk").write_bytes(b"s1 1\ns2 2\n")
    with MappedReader(f"ark:{tmp_path}/spk", "", "int32") as reader:
        assert "u" not in reader
        assert reader["s2"] == 2


def test_no_index_is_built(tmp_path: Path) -> None:
    archive, script = write_table(tmp_path, matrices())
    assert find_table_index(archive, "ark-matrix") is None
    assert find_table_index(script, "scp") is None
    assert sorted(os.listdir(tmp_path)) == ["feats.ark", "feats.scp"]
    with pytest.raises(sk.DataNotFound):
        find_table_index(tmp_path / "no.ark", "ark-matrix")


@pytest.mark.parametrize("kind", ["ark", "scp"])
def test_ranges_are_the_bytes_of_entries(tmp_path: Path, kind: str) -> None:
    values = matrices()
    paths = dict(zip(("ark", "scp"), write_table(tmp_path, values), strict=True))
    ds = sk.open(f"{kind}:{paths[kind]}")
    index = find_table_index(paths[kind], "ark-matrix" if kind == "ark" else "scp")
    assert index is not None
    assert len(index) == len(values)
    data = paths[kind].read_bytes()
    edges = [ds.locate(row).offset for row in range(len(ds))] + [len(data)]
    for row, key in enumerate(values):
        assert index.ranges(key) == [(edges[row], edges[row + 1])]
    assert index.ranges("utt") == index.ranges("utt00") == []


def test_a_key_of_several_entries_has_several_ranges(tmp_path: Path) -> None:
    path = tmp_path / "a.ark"
    path.write_bytes(b"b 1 \na 2 \nb 3 \n")
    with pytest.warns(sk.errors.DuplicateKeys, match="'b'"):
        sk.open(path, format=sk.formats.Kaldi(holder="int32"))
    index = find_table_index(path, "ark-int32")
    assert index is not None
    assert index.ranges("b") == [(0, 5), (10, 15)]


def test_a_file_among_others_is_found_and_a_changed_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, folder in (("a", tmp_path), ("b", tmp_path / "in")):
        write_table(folder, {f"{name}-{key}": value for key, value in matrices().items()}, name=name)
    sk.open(f"ark:{tmp_path}/**/*.ark")
    path = tmp_path / "in" / "b.ark"
    index = find_table_index(path, "ark-matrix")
    assert index is not None
    ((start, stop),) = index.ranges("b-utt3")
    assert path.read_bytes()[start:stop].startswith(b"b-utt3 \0BFM ")
    assert index.ranges("a-utt3") == []
    path.write_bytes(path.read_bytes() + b"x ")
    assert find_table_index(path, "ark-matrix") is None
    with pytest.raises(sk.IndexStale):
        index.ranges("b-utt3")
