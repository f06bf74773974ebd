"""Writers of tables: which files they write, byte for byte, and what they refuse."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.kaldi.holder_cases import TABLE_CASES, Case, dumped

import seekable as sk
from seekable.kaldi import Writer, open_wx, read
from seekable.kaldi import write as kaldi_write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# ---- the bytes


@pytest.mark.parametrize(
    ("case", "form"),
    [
        *((case, "") for case in TABLE_CASES if case.binary is not None),
        *((case, ",t") for case in TABLE_CASES if case.text is not None),
    ],
)
def test_an_archive_is_keys_and_objects_and_the_script_has_their_offsets(
    case: Case, form: str, here: Path
) -> None:
    data = case.text if form else case.binary
    assert data is not None
    with Writer(f"ark,scp{form}:a.ark,a.scp", case.holder) as writer:
        writer.write("utt1", case.value)
        writer["utt2"] = case.value
    assert (here / "a.ark").read_bytes() == b"utt1 " + data + b"utt2 " + data
    second = 10 + len(data)
    assert (here / "a.scp").read_bytes() == b"utt1 a.ark:5\nutt2 a.ark:%d\n" % second


@pytest.mark.parametrize("count", [0, 1, 1000])
@pytest.mark.parametrize("options", ["", ",f", ",nf", ",b", ",p"])
def test_any_number_of_entries(count: int, options: str, here: Path) -> None:
    with Writer(f"ark,scp{options}:a.ark,a.scp", "int32") as writer:
        for number in range(count):
            writer.write(f"utt{number}", number)
    lines = (here / "a.scp").read_text().splitlines()
    assert len(lines) == count
    for number, line in enumerate(lines[:1] + lines[-1:]):
        key, name = line.split()
        assert key == f"utt{number and count - 1}"
        assert read(name, "int32") == (number and count - 1)
    assert (here / "a.ark").read_bytes() == b"".join(
        b"utt%d " % number + dumped("int32", number) for number in range(count)
    )


def test_the_path_stands_in_the_script_as_it_was_given(here: Path) -> None:
    (here / "sub dir").mkdir()
    for name in ("./a.ark", "sub dir/ü.ark", f"{here}/sub dir/../b.ark"):
        with Writer(f"ark,scp:{name},s.scp", "token") as writer:
            writer.write("ü", "x")
        assert (here / "s.scp").read_text("utf-8") == f"ü {name}:3\n"
        assert read(f"{name}:3", "token") == "x"


def test_keys_that_are_not_utf8_survive(here: Path) -> None:
    key = b"\xe4utt".decode("utf-8", "surrogateescape")
    with Writer("ark,scp:a.ark,a.scp", "token") as writer:
        writer.write(key, "x")
    assert (here / "a.ark").read_bytes() == b"\xe4utt x\n"
    assert (here / "a.scp").read_bytes() == b"\xe4utt a.ark:5\n"


def test_the_same_key_may_come_again(here: Path) -> None:
    with Writer("ark:a.ark", "int32") as writer:
        writer.write("utt", 1)
        writer.write("utt", 2)
    assert (here / "a.ark").read_bytes() == b"utt " + dumped("int32", 1) + b"utt " + dumped("int32", 2)


def test_options_of_the_holder(here: Path) -> None:
    with Writer("ark,t:a.ark", "vector", precision=9) as writer:
        writer.write("a", [np.float32(1 / 3)])
    assert (here / "a.ark").read_bytes() == b"a  [ 0.333333343 ]\n"
    with Writer("ark:b.ark", "compressed-matrix", method=5) as writer:
        writer.write("a", [[1.0, 2.0]])
    assert (here / "b.ark").read_bytes().startswith(b"a \0BCM3 ")
    with pytest.raises(sk.errors.InvalidArgument, match="method= has no meaning for the holder matrix"):
        Writer("ark:c.ark", "matrix", method=5)
    assert not (here / "c.ark").exists()


def test_an_existing_table_is_replaced(here: Path) -> None:
    for count in (10, 1):
        with Writer("ark,scp:a.ark,a.scp", "int32") as writer:
            for number in range(count):
                writer.write(f"u{number}", number)
    assert (here / "a.ark").read_bytes() == b"u0 " + dumped("int32", 0)
    assert (here / "a.scp").read_bytes() == b"u0 a.ark:3\n"


# ---- what is refused


@pytest.mark.parametrize("key", ["", "a b", "a\tb", "a\n", "\0", "\x01", "\x7f", " "])
def test_a_bad_key_is_refused_and_the_next_entry_is_written(key: str, here: Path) -> None:
    with Writer("ark,scp:a.ark,a.scp", "token") as writer:
        with pytest.raises(sk.errors.InvalidArgument, match="key must be a word without whitespace"):
            writer.write(key, "x")
        with pytest.raises(sk.errors.WrongType, match="key must be a str"):
            writer.write(b"utt", "x")  # type: ignore[arg-type]
        writer.write("good", "x")
    assert (here / "a.ark").read_bytes() == b"good x\n"
    assert (here / "a.scp").read_bytes() == b"good a.ark:5\n"


@pytest.mark.parametrize(
    ("holder", "value"),
    [
        ("matrix", "text"),
        ("matrix", [1, 2]),
        ("matrix", [[1], [1, 2]]),
        ("int32", 1 << 31),
        ("token", "a b"),
        ("bool", 1),
        ("wave", 5),
    ],
)
def test_a_bad_value_is_refused_and_nothing_of_the_entry_is_written(
    holder: str, value: Any, here: Path
) -> None:
    writer = Writer("ark,scp:a.ark,a.scp", holder)
    with pytest.raises(
        (sk.errors.WrongType, sk.errors.InvalidArgument), match=r"^'ark,scp:a\.ark,a\.scp', key 'utt': "
    ):
        writer.write("utt", value)
    writer.close()
    assert (here / "a.ark").read_bytes() == (here / "a.scp").read_bytes() == b""


class Half:
    """An object that fails in the middle of its own bytes."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails

    def Read(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        file.read(4)

    def Write(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802
        file.write(b"half")
        if self.fails:
            message = "the other half is lost"
            raise RuntimeError(message)


@pytest.mark.parametrize("options", ["", ",f"])
def test_after_a_failed_write_every_later_one_raises(options: str, here: Path) -> None:
    writer = Writer(f"ark,scp{options}:a.ark,a.scp", Half)
    writer.write("one", Half())
    with pytest.raises(RuntimeError, match="other half"):
        writer.write("two", Half(fails=True))
    for _ in range(2):
        with pytest.raises(
            sk.errors.CorruptTable, match=r"'two' could not be written \(the other half is lost\)"
        ):
            writer.write("three", Half())
    assert writer.is_open
    with pytest.raises(sk.errors.CorruptTable, match="write the table again"):
        writer.close()
    assert not writer.is_open
    # The entries before it are complete, and no line points at the torn one.
    assert (here / "a.ark").read_bytes() == b"one \0Bhalf"
    assert (here / "a.scp").read_bytes() == b"one a.ark:4\n"


@pytest.mark.parametrize("options", ["", ",scp"])
def test_a_full_disk_is_an_error(options: str, here: Path) -> None:
    os.symlink("/dev/full", here / "full")
    if options:
        writer = Writer("ark,scp:a.ark,full", "int32")
    else:
        writer = Writer("ark,f:full", "int32")
        with pytest.raises(OSError, match="No space left"):
            writer.write("utt", 1)
        with pytest.raises(sk.errors.CorruptTable, match="No space left"):
            writer.write("utt", 1)
        with pytest.raises(sk.errors.CorruptTable, match="No space left"):
            writer.close()
        return
    writer.write("utt", 1)
    with pytest.raises(OSError, match="No space left"):
        writer.close()


def test_named_pipes_and_open_descriptors(here: Path) -> None:
    os.mkfifo(here / "fifo")
    with subprocess.Popen(["cat", "fifo"], stdout=subprocess.PIPE) as reader:
        with Writer("ark,t:fifo", "int32") as writer:
            writer.write("utt1", 1)
            writer.write("utt2", 2)
        assert reader.communicate()[0] == b"utt1 1 \nutt2 2 \n"
    ours, theirs = os.pipe()
    with Writer(f"ark,t,f:/dev/fd/{theirs}", "int32") as writer:
        writer.write("utt1", 1)
    kaldi_write(f"/dev/fd/{theirs}", 5, "int32", binary=False)
    os.close(theirs)
    with os.fdopen(ours, "rb") as file:
        assert file.read() == b"utt1 1 \n5 \n"
    with pytest.raises(sk.errors.InvalidArgument, match="must be a regular file"):
        Writer("ark,scp:fifo,a.scp", "int32")


@pytest.mark.parametrize("wspecifier", ["ark:/dev/full", "ark,t:/dev/full"])
def test_a_full_disk_is_an_error_when_the_writer_is_closed(wspecifier: str) -> None:
    writer = Writer(wspecifier, "int32")
    writer.write("utt", 1)
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        writer.close()
    assert not writer.is_open
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        kaldi_write("/dev/full", 1, "int32")


@pytest.mark.usefixtures("here")
def test_a_closed_writer() -> None:
    writer = Writer("ark,t:a.ark", "int32")
    assert writer.is_open
    assert repr(writer) == "Writer('ark,t:a.ark', 'int32')"
    writer.close()
    writer.close()
    assert not writer.is_open
    assert repr(writer) == "Writer('ark,t:a.ark', 'int32', closed)"
    for act in (lambda: writer.write("a", 1), writer.flush):
        with pytest.raises(sk.errors.InvalidArgument, match="the writer is closed"):
            act()


@pytest.mark.parametrize(
    ("wspecifier", "error"),
    [
        ("a.ark", "has no ':'"),
        ("", "it is empty"),
        ("scp,ark:a,b", "in this order"),
        ("ark,s:a", "'s' is not an option"),
        ("ark:a.ark:12", "an offset into a file"),
        ("ark:cat |", "a command to read from"),
    ],
)
def test_a_bad_wspecifier(wspecifier: str, error: str, here: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=error):
        Writer(wspecifier, "int32")
    assert names(here) == []


@pytest.mark.parametrize("archive", ["", "-", "| cat > x", "folder", "fifo"])
def test_a_script_needs_an_archive_with_offsets(archive: str, here: Path) -> None:
    (here / "folder").mkdir()
    os.mkfifo(here / "fifo")
    with pytest.raises(sk.errors.InvalidArgument, match="with ark,scp the archive must be a regular file"):
        Writer(f"ark,scp:{archive},a.scp", "int32", pipes="allow")
    assert names(here) == ["fifo", "folder"]


def test_an_archive_is_not_its_own_script(here: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="are two files"):
        Writer("ark,scp:a.ark,./a.ark", "int32")
    assert names(here) == []


def test_a_missing_folder_leaves_the_other_file_alone(here: Path) -> None:
    (here / "a.ark").write_bytes(b"old")
    with pytest.raises(sk.DataNotFound, match="'none' does not exist"):
        Writer("ark,scp:a.ark,none/a.scp", "int32")
    assert (here / "a.ark").read_bytes() == b"old"


def test_a_block_that_fails_keeps_the_entries_before(here: Path) -> None:
    with pytest.raises(ZeroDivisionError), Writer("ark,scp:a.ark,a.scp", "token") as writer:  # noqa: PT012
        writer.write("utt", "x")
        1 / 0  # noqa: B018
    assert (here / "a.ark").read_bytes() == b"utt x\n"
    assert (here / "a.scp").read_bytes() == b"utt a.ark:4\n"
    assert not writer.is_open


def test_a_forgotten_writer_keeps_its_entries(here: Path) -> None:
    writer = Writer("ark,scp:a.ark,a.scp", "token")
    writer.write("utt", "x")
    del writer
    assert (here / "a.ark").read_bytes() == b"utt x\n"
    assert (here / "a.scp").read_bytes() == b"utt a.ark:4\n"


def test_a_forked_child_writes_nothing_of_its_parent(here: Path) -> None:
    writer = Writer("ark,scp:a.ark,a.scp", "token")
    writer.write("utt", "x")
    if not (child := os.fork()):
        with contextlib.suppress(sk.errors.ForkUnsafe):
            writer.write("utt2", "x")
            os._exit(1)
        for act in (writer.flush, writer.close):
            with contextlib.suppress(sk.errors.ForkUnsafe):
                act()
                os._exit(1)
        del writer
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (here / "a.ark").read_bytes() == b""
    writer.close()
    assert (here / "a.ark").read_bytes() == b"utt x\n"


# ---- flushing


def test_a_flushed_entry_is_there_and_its_line_too(here: Path) -> None:
    plain = Writer("ark,scp:a.ark,a.scp", "token")
    plain.write("utt", "x")
    assert (here / "a.ark").read_bytes() == b""
    plain.flush()
    assert (here / "a.ark").read_bytes() == b"utt x\n"
    assert (here / "a.scp").read_bytes() == b"utt a.ark:4\n"
    plain.close()
    with Writer("ark,scp,f:b.ark,b.scp", "token") as writer:
        writer.write("utt", "x")
        assert (here / "b.ark").read_bytes() == b"utt x\n"
        assert (here / "b.scp").read_bytes() == b"utt b.ark:4\n"


def test_a_script_is_never_ahead_of_its_archive(here: Path) -> None:
    """Whatever is on disk at any moment, the last line of the script points at a complete entry."""
    with Writer("ark,scp:a.ark,a.scp", "int32") as writer:
        for number in range(20_000):
            writer.write(f"utterance-{number}", number)
            if number % 100 == 0:
                script = (here / "a.scp").read_bytes()
                assert script == b"" or script.endswith(b"\n")
                if script:
                    offset = int(script.rsplit(b":", 1)[1])
                    assert (here / "a.ark").stat().st_size >= offset + 7


# ---- standard output and commands


@pytest.mark.usefixtures("forked_programs")
def test_standard_output() -> None:
    code = (
        "from seekable import kaldi\n"
        "with kaldi.Writer('ark,t:-', 'int32-vector') as writer:\n"
        "    writer.write('a', [1, 2])\n"
        "    print('text between')\n"
        "    writer.write('b', [])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"text between\na 1 2 \nb \n"


def test_a_command_is_run_only_if_allowed(here: Path) -> None:
    for wspecifier in ("ark:| cat > a", "ark,scp:a.ark,| cat > a"):
        with pytest.raises(sk.errors.PipeRefused, match="pipes='allow'"):
            Writer(wspecifier, "int32")
    assert names(here) == []
    with Writer("ark,t:| cat > a", "int32", pipes="allow") as writer:
        writer.write("utt", 1)
    assert (here / "a").read_bytes() == b"utt 1 \n"
    with Writer("ark,scp,t,f:b.ark,| gzip -c > b.scp.gz", "int32", pipes="allow") as writer:
        writer.write("utt", 1)
    assert subprocess.check_output(["gunzip", "-c", "b.scp.gz"]) == b"utt b.ark:4\n"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "wspecifier", ["ark:| cat > a; exit 3", "ark,scp:a.ark,| cat > a; exit 3", "ark:| exit 3"]
)
def test_the_exit_code_of_a_command_counts_when_the_writer_is_closed(wspecifier: str) -> None:
    writer = Writer(wspecifier, "int32", pipes="allow")
    writer.write("utt", 1)
    with pytest.raises(sk.errors.PipeFailed) as failed:
        writer.close()
    assert failed.value.exit_code == 3
    writer.close()


@pytest.mark.usefixtures("here")
def test_a_command_that_does_not_read_everything() -> None:
    writer = Writer("ark:| exit 3", "matrix", pipes="allow")
    large = np.zeros((1000, 100), "f4")
    with pytest.raises(sk.errors.PipeFailed):  # noqa: PT012 - the pipe may hold the first ones
        for number in range(100):
            writer.write(f"utt{number}", large)
    with pytest.raises(sk.errors.CorruptTable, match="could not be written"):
        writer.write("more", large)
    with pytest.raises((sk.errors.PipeFailed, sk.errors.CorruptTable)):
        writer.close()


# ---- files that a script names


def test_each_object_goes_to_the_file_of_its_key(here: Path) -> None:
    (here / "in.scp").write_text("a a.vec\nb sub.vec\nc | cat > c.vec\n")
    with Writer("scp:in.scp", "vector", pipes="allow") as writer:
        writer.write("b", [1.0])
        assert (here / "sub.vec").read_bytes() == dumped("vector", [1.0])
        assert not (here / "a.vec").exists()
        writer.write("a", [])
        writer.write("c", [2.0])
        writer.flush()
    assert (here / "a.vec").read_bytes() == dumped("vector", [])
    assert (here / "c.vec").read_bytes() == dumped("vector", [2.0])
    for pipes, name in (("refuse", "in.scp"), ("specifier", "cat < in.scp |")):
        with Writer(f"scp,t:{name}", "vector", pipes=pipes) as writer:  # type: ignore[arg-type]
            writer.write("a", [0.5])
            with pytest.raises(sk.errors.PipeRefused, match="pipes='allow'"):
                writer.write("c", [0.5])
    assert (here / "a.vec").read_bytes() == b" [ 0.5 ]\n"


def test_a_key_without_a_line(here: Path) -> None:
    (here / "in.scp").write_text("a a.vec\n")
    with Writer("scp:in.scp", "vector") as writer:
        with pytest.raises(sk.errors.KeyNotFound, match=r"'in.scp' has no line for the key 'b'"):
            writer.write("b", [1.0])
        writer.write("a", [1.0])
    with Writer("scp,p:in.scp", "vector") as writer:
        writer.write("b", [1.0])
        writer.write("a", [2.0])
    assert names(here) == ["a.vec", "in.scp"]
    assert (here / "a.vec").read_bytes() == dumped("vector", [2.0])


@pytest.mark.parametrize(
    ("script", "error"),
    [("a x\nb y\na z\n", "line 3 has the key 'a' a second time"), ("a x\n\n", "line 2 is empty")],
)
def test_a_bad_script(script: str, error: str, here: Path) -> None:
    (here / "in.scp").write_text(script)
    with pytest.raises(sk.errors.CorruptTable, match=error):
        Writer("scp:in.scp", "vector")


def test_an_offset_in_a_script_is_nowhere_to_write(here: Path) -> None:
    (here / "in.scp").write_text("a x.ark:5\n")
    with (
        Writer("scp:in.scp", "vector") as writer,
        pytest.raises(sk.errors.InvalidArgument, match="an offset"),
    ):
        writer.write("a", [1.0])


def test_a_bad_value_leaves_the_file_of_its_key_alone(here: Path) -> None:
    (here / "in.scp").write_text("a a.vec\n")
    (here / "a.vec").write_bytes(b"old")
    with Writer("scp:in.scp", "vector") as writer, pytest.raises(sk.errors.WrongType):
        writer.write("a", "text")
    assert (here / "a.vec").read_bytes() == b"old"


# ---- atomic tables


def test_atomic_files_appear_when_the_writer_is_closed(here: Path) -> None:
    (here / "a.ark").write_bytes(b"old")
    (here / "a.scp").write_bytes(b"old lines")
    with Writer("ark,scp,f:a.ark,a.scp", "token", atomic=True) as writer:
        writer.write("utt", "x")
        assert (here / "a.ark").read_bytes() == b"old"
        assert (here / "a.scp").read_bytes() == b"old lines"
    assert names(here) == ["a.ark", "a.scp"]
    assert (here / "a.ark").read_bytes() == b"utt x\n"
    assert (here / "a.scp").read_bytes() == b"utt a.ark:4\n"


def test_after_an_error_atomic_files_stay_as_they_were(here: Path) -> None:
    (here / "a.ark").write_bytes(b"old")
    with (  # noqa: PT012
        pytest.raises(ZeroDivisionError),
        Writer("ark,scp:a.ark,a.scp", "token", atomic=True) as writer,
    ):
        writer.write("utt", "x")
        1 / 0  # noqa: B018
    writer = Writer("ark,scp:a.ark,a.scp", Half, atomic=True)
    with pytest.raises(RuntimeError):
        writer.write("utt", Half(fails=True))
    with pytest.raises(sk.errors.CorruptTable, match="could not be written"):
        writer.close()
    forgotten = Writer("ark,scp:a.ark,a.scp", "token", atomic=True)
    forgotten.write("utt", "x")
    del forgotten
    assert names(here) == ["a.ark"]
    assert (here / "a.ark").read_bytes() == b"old"


def test_atomic_is_for_files(here: Path) -> None:
    (here / "in.scp").write_text("a a.vec\n")
    for wspecifier in ("ark:-", "ark:| cat", "ark,scp:a.ark,-", "ark:/dev/null"):
        with pytest.raises(sk.errors.InvalidArgument, match="atomic=True"):
            Writer(wspecifier, "vector", atomic=True, pipes="allow")
    with Writer("scp:in.scp", "vector", atomic=True) as writer:
        writer.write("a", [1.0])
    assert names(here) == ["a.vec", "in.scp"]


def test_the_archive_appears_before_its_script(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[str] = []
    real = os.replace

    def replace(old: str, new: str) -> None:
        renamed.append(os.path.basename(new))
        assert all(each.endswith(".tmp") or each in renamed for each in names(here))
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    with Writer("ark,scp:a.ark,a.scp", "token", atomic=True) as writer:
        writer.write("utt", "x")
    assert renamed == ["a.ark", "a.scp"]


def test_neither_file_appears_if_the_script_cannot_be_written(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def fsync(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 2:
            message = "No space left on device"
            raise OSError(message)

    monkeypatch.setattr(os, "fsync", fsync)
    writer = Writer("ark,scp:a.ark,a.scp", "token", atomic=True)
    writer.write("utt", "x")
    with pytest.raises(OSError, match="No space left"):
        writer.close()
    assert names(here) == []


def test_the_command_line_gets_bytes_that_open_wx_takes(here: Path) -> None:
    """Text objects of a table are those of single files: no header before each."""
    with Writer("ark,t:a.ark", "matrix") as writer:
        writer.write("utt", [[1.0]])
    with open_wx("a.mat", binary=False) as file:
        file.write(b" [\n  1 ]\n")
    assert (here / "a.ark").read_bytes() == b"utt " + (here / "a.mat").read_bytes()
    assert io.BytesIO((here / "a.ark").read_bytes()).readline() == b"utt  [\n"
