"""Commands: refused unless allowed, known ones read without running them, and failures never lost."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import pickle
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.formats.kaldi.files.pipes import _PLAIN, FileCommand, Pipes, file_command, pipes_inside
from seekable.kaldi import open_rx, open_wx

if TYPE_CHECKING:
    from collections.abc import Callable

CONTENT = b"\0Bgood day" * 20_000

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}

COMMANDS = {
    "gunzip -c {}": "gz",
    "gzip -dc {}": "gz",
    "gzip -c -d {}": "gz",
    "gzip --decompress --stdout {}": "gz",
    "/usr/bin/gunzip -c {}": "gz",
    "zcat {}": "gz",
    "zcat -- {}": "gz",
    "bzip2 -dc {}": "bz2",
    "bunzip2 -c {}": "bz2",
    "bzcat {}": "bz2",
    "xz -dc {}": "xz",
    "xz -cdq {}": "xz",
    "xzcat {}": "xz",
    "zstd -dc {}": "zst",
    "zstdcat {}": "zst",
    "unzstd -c {}": "zst",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "coding"), COMMANDS.items(), ids=COMMANDS)
def test_a_command_that_decompresses_a_file_is_not_run(
    command: str, coding: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)  # Nothing can be run.
    (here / "a b").write_bytes(COMPRESS[coding](CONTENT[:-5]) + COMPRESS[coding](CONTENT[-5:]))
    with open_rx(f"{command.format(shlex.quote('a b'))} |") as file:
        assert file.binary
        assert file.kind == "pipe"
        assert file.tell() == 2
        assert file.read() == CONTENT[2:]
        assert file.tell() == len(CONTENT)


def test_cat_gives_the_bytes_of_files_as_they_are(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    (here / "a").write_bytes(b"\0Ba")
    (here / "b").write_bytes(gzip.compress(b"b"))
    with open_rx(" cat a b|") as file:
        assert (file.binary, file.read()) == (True, b"a" + (here / "b").read_bytes())


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        "cat -",
        "cat -- -",
        "cat -n a",
        "cat a > b",
        "cat a; rm b",
        "cat a && b",
        "cat $a",
        "cat `a`",
        "cat *.ark",
        "cat a?",
        "cat [a]",
        "cat {a,b}",
        "cat ~/a",
        'cat "$a"',
        "cat a # b",
        "cat a\nrm b",
        "cat a & rm b",
        "cat a | sort",
        "cat a <b",
        "cat 'a",
        "cat a\\ b",
        "gunzip a",
        "gzip -c a",
        "gunzip -cf a",
        "xz -c a",
        "xz -dcT0 a",
        "zstd -d a",
        "./gunzip -c a",
        "LC_ALL=C zcat a",
        "sox a.flac -t wav -",
        "gunzip -c a -v",
    ],
)
def test_any_other_command_is_refused_and_not_run(command: str, here: Path) -> None:
    for name in ("a", "b"):
        (here / name).write_bytes(b"kept")
    assert file_command(command) is None
    with pytest.raises(sk.errors.PipeRefused, match="run only with pipes='allow'") as caught:
        open_rx(f"{command} |")
    assert isinstance(caught.value, PermissionError)
    assert command in str(caught.value).replace("\\n", "\n").replace("\\\\", "\\").replace("\\'", "'")
    assert sorted(os.listdir(here)) == ["a", "b"]


def test_a_command_to_write_to_is_refused(here: Path) -> None:
    with pytest.raises(sk.errors.PipeRefused, match=r"'\| cat > x'"):
        open_wx("| cat > x")
    assert os.listdir(here) == []


@pytest.mark.parametrize("value", ["yes", "", None, True])
def test_pipes_has_three_values(value: Any, here: Path) -> None:
    (here / "a").write_bytes(b"")
    for function in (open_rx, open_wx):
        with pytest.raises(sk.errors.InvalidArgument, match="pipes must be 'refuse', 'specifier' or 'allow'"):
            function("a", pipes=value)


def test_a_command_of_the_caller_runs_and_one_in_a_file_does_not(here: Path) -> None:
    with open_rx("printf abc |", pipes="specifier") as file:
        assert file.read() == b"abc"
    with open_wx("| cat > written", header=False, pipes="specifier") as sink:
        sink.write(b"abc")
    assert (here / "written").read_bytes() == b"abc"
    assert [pipes_inside(value) for value in get_args(Pipes)] == ["refuse", "refuse", "allow"]


# Characters that mean something to a shell, and some that mean nothing.
TEXTS = st.text(alphabet="ab '\"\\$*?~#=!{}[],;&|<>()^%\t\n\r\v`-+@:", max_size=10)


@given(st.lists(TEXTS, min_size=8, max_size=40))
def test_what_is_not_run_has_the_words_that_a_shell_sees(texts: list[str]) -> None:
    plain = [text for text in texts if _PLAIN.fullmatch(text)]
    script = "".join(f"printf '%s\\0' {text}\necho end\n" for text in plain)
    done = subprocess.run(["/bin/sh", "-c", script], check=True, capture_output=True)
    words = [shlex.split(text) for text in plain]
    # printf prints its format once if there are no words.
    printed = "".join("".join(f"{word}\0" for word in each or [""]) + "end\n" for each in words)
    assert done.stdout == printed.encode()


@given(st.lists(st.text(min_size=1).filter(lambda text: text[0] != "-" and "\0" not in text), min_size=1))
def test_quoted_names_are_the_names_that_a_shell_sees(names: list[str]) -> None:
    found = file_command(shlex.join(["cat", *names]))
    assert found in {None, FileCommand(None, tuple(names))}


@pytest.mark.parametrize(
    "name", ["a b", "a$b", "a;b", "a'b", 'a"b', "a*b", "a|b", "a#b", "a\tb", "é", "a=b", "a,b"]
)
def test_names_are_as_in_a_shell(name: str, here: Path) -> None:
    (here / name).write_bytes(name.encode())
    command = f"cat {shlex.quote(name)}"
    assert subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True).stdout == name.encode()
    assert file_command(command) == FileCommand(None, (name,))
    with open_rx(f"{command} |") as file:
        assert file.read() == name.encode()


@pytest.mark.parametrize(
    ("command", "coding"), [("zcat", "gz"), ("bzcat", "bz2"), ("xzcat", "xz"), ("zstdcat", "zst")]
)
def test_torn_and_damaged_files_are_errors(command: str, coding: str, here: Path) -> None:
    whole = COMPRESS[coding](os.urandom(100_000))
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 0x55
    for data in (b"", whole[:-1], whole[: len(whole) // 2], whole[:3], b"no such format", whole + b"junk"):
        (here / "a").write_bytes(data)
        with open_rx(f"{command} a |", header=False) as file:
            for _ in range(2):  # What was read once is not taken for the end of the content.
                with pytest.raises(sk.errors.UnsupportedFormat, match="'a' cannot be decompressed"):
                    file.read()
    if coding != "zst":  # zstandard adds no checksum unless it is asked to.
        (here / "a").write_bytes(spoilt)
        with pytest.raises(sk.errors.UnsupportedFormat, match="'a' cannot be decompressed"):
            open_rx(f"{command} a |", header=False).read()


def test_a_missing_file_of_a_command_is_an_error_at_once(here: Path) -> None:
    (here / "a").write_bytes(gzip.compress(b"a"))
    for header in (True, False):
        with pytest.raises(sk.DataNotFound, match=r"there is no file 'b.gz'"):
            open_rx("gunzip -c a b.gz |", header=header)


BOMB = """
import sys
from seekable.kaldi import open_rx
from tests.processes import peak_kilobytes
with open_rx(sys.argv[1], header=False) as file:
    file.read(1 << 10)
    before = peak_kilobytes()
    size = sum(map(len, iter(lambda: file.read(1 << 16), b"")))
print(size, peak_kilobytes() - before)
"""


@pytest.mark.parametrize(
    "coding", ["zst", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("gz", "bz2", "xz"))]
)
def test_a_bomb_takes_little_memory(coding: str, here: Path) -> None:
    program = {"gz": "zcat", "bz2": "bzcat", "xz": "xzcat", "zst": "zstdcat"}[coding]
    # What zstd makes of its smallest input are 64 MiB.
    whole, most = (256 << 20, 128 << 10) if coding == "zst" else (64 << 20, 40 << 10)
    (here / "a").write_bytes(COMPRESS[coding](bytes(whole)))
    # In the folder of the repository, so that the process can import from the tests.
    root, command = Path(__file__).parents[2], [sys.executable, "-c", BOMB, f"{program} '{here}/a' |"]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    size, kilobytes = map(int, done.stdout.split())
    assert size == whole - (1 << 10)
    assert kilobytes < most


# ---- allowed commands


def test_an_allowed_command_is_read() -> None:
    with open_rx("printf '\\000Bgood day' |", pipes="allow") as file:
        assert (file.binary, file.kind, file.read(4), file.tell(), file.read()) == (
            True,
            "pipe",
            b"good",
            6,
            b" day",
        )
    assert file.close() is True


def test_a_pipeline_of_a_shell_is_read(here: Path) -> None:
    (here / "a").write_bytes(b"b\na\n")
    with open_rx("cat a | sort |", pipes="allow") as file:
        assert file.readlines() == [b"a\n", b"b\n"]


@pytest.mark.parametrize("read", ["all", "exactly"])
def test_a_command_that_fails_after_its_last_byte_is_an_error(read: str) -> None:
    file = open_rx("printf abc; exit 3 |", pipes="allow")
    assert file.read(3 if read == "exactly" else -1) == b"abc"
    with pytest.raises(sk.errors.PipeFailed, match="'printf abc; exit 3' failed with exit code 3") as caught:
        file.close()
    assert isinstance(caught.value, OSError)
    assert (caught.value.command, caught.value.exit_code) == ("printf abc; exit 3", 3)
    assert file.closed
    assert file.close() is False  # Told once.


def test_the_status_of_a_command_without_an_error() -> None:
    file = open_rx("exit 3 |", pipes="allow")
    assert (file.binary, file.read()) == (False, b"")
    assert file.close(check=False) is False
    assert file.close() is False


def test_a_with_block_raises_the_failure_of_the_command() -> None:
    with pytest.raises(sk.errors.PipeFailed, match="exit code 1"), open_rx("false |", pipes="allow") as file:
        file.read()


def test_an_error_in_the_block_counts_more_than_the_exit_code() -> None:
    with contextlib.suppress(ZeroDivisionError), open_rx("false |", pipes="allow") as file:
        file.read()
        _ = 1 / 0
    assert file.close() is True  # The exit code was ignored.


def test_a_command_that_was_killed_is_an_error_with_its_signal() -> None:
    file = open_rx("printf a; kill -9 $$ |", pipes="allow")
    assert file.read() == b"a"
    with pytest.raises(sk.errors.PipeFailed, match="ended by signal 9") as caught:
        file.close()
    assert caught.value.exit_code == -9


def test_no_failure_before_the_end_of_the_output() -> None:
    with open_rx("yes |", pipes="allow") as file:
        assert file.read(2) == b"y\n"
    assert file.close() is True


def test_no_failure_while_output_is_in_the_buffer() -> None:
    with open_rx("printf abc; exit 3 |", pipes="allow") as file:
        assert file.read(1) == b"a"


def test_half_a_header_from_a_command_is_an_error_and_leaves_no_process() -> None:
    before = children()
    with pytest.raises(sk.errors.CorruptObject, match=r"byte [01]: expected the binary header"):
        open_rx("printf '\\000' |", pipes="allow")
    assert children() == before


def test_no_zombie_stays_however_a_file_ends() -> None:
    before = children()
    file = open_rx("yes |", pipes="allow")
    assert len(children() - before) == 1
    del file
    assert children() == before
    sink = open_wx("| cat > /dev/null", pipes="allow")
    assert len(children() - before) == 1
    del sink
    assert children() == before


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_what_a_command_inherits(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with (here / "secret").open("wb") as secret:
        os.set_inheritable(secret.fileno(), True)  # noqa: FBT003 - the function takes no keywords
        command = "echo $SEEKABLE_TEST; pwd; ls /proc/self/fd | wc -l; echo to stderr >&2; trap"
        os.environ["SEEKABLE_TEST"] = "from outside"
        try:
            with open_rx(f"{command} |", pipes="allow") as file:
                lines = file.read().decode().split("\n")
        finally:
            del os.environ["SEEKABLE_TEST"]
    # Four: stdin, stdout, stderr, and the folder that ls reads. And no signal is ignored.
    assert lines == ["from outside", str(here), "4", ""]
    assert capfd.readouterr().err == "to stderr\n"


def test_an_allowed_command_is_written_to(here: Path) -> None:
    with open_wx("| gzip -c > a.gz", pipes="allow") as file:
        assert file.write(CONTENT) == len(CONTENT)
        assert (file.kind, file.tell()) == ("pipe", len(CONTENT) + 2)
    assert gzip.decompress((here / "a.gz").read_bytes()) == b"\0B" + CONTENT


def test_a_command_that_fails_at_the_end_of_its_input_is_an_error() -> None:
    file = open_wx("| cat > /dev/null; exit 3", pipes="allow")
    file.write(b"abc")
    with pytest.raises(sk.errors.PipeFailed, match="exit code 3"):
        file.close()
    assert file.close() is False


def test_the_status_of_a_command_that_is_written_to_without_an_error() -> None:
    file = open_wx("| exit 3", pipes="allow")
    assert file.close(check=False) is False


@pytest.mark.parametrize("code", [0, 4])
def test_a_command_that_stops_reading_is_an_error(code: int) -> None:
    before = children()
    file = open_wx(f"| head -c 1 > /dev/null; exit {code}", pipes="allow")
    with pytest.raises(sk.errors.PipeFailed):
        file.writelines([CONTENT] * 1000)
    with pytest.raises(sk.errors.PipeFailed) as caught:
        file.close()
    assert caught.value.exit_code == code
    assert children() == before


def test_what_a_command_did_not_read_is_an_error_at_the_end() -> None:
    file = open_wx("| true", binary=False, pipes="allow")
    assert file.close() is True  # Nothing was written, nothing was lost.
    file = open_wx("| exit 0", binary=False, pipes="allow")
    file._command._process.wait()  # type: ignore[union-attr]
    file.write(b"abc")
    with pytest.raises(sk.errors.PipeFailed, match="stopped reading before everything was written"):
        file.close()


def test_the_failure_of_a_pipe_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(sk.errors.PipeFailed("false", 1)))
    assert (type(copy), copy.command, copy.exit_code) == (sk.errors.PipeFailed, "false", 1)
    assert str(copy) == str(sk.errors.PipeFailed("false", 1))
