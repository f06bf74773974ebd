"""Files of extended filenames: headers, offsets, compression, standard streams, atomic files, errors."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import socket
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable import kaldi
from seekable.formats.kaldi.files import open_named as opening
from seekable.kaldi import RandomAccessReader, RxFile, SequentialReader, WxFile, open_rx, open_wx
from seekable.storage.compression import inflated
from seekable.storage.seek_points import write_frames

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- reading


@pytest.mark.parametrize(
    ("data", "binary", "rest"),
    [
        (b"\0Bgood", True, b"good"),
        (b"good", False, b"good"),
        (b"", False, b""),
        (b"\0B", True, b""),
        (b"B\0", False, b"B\0"),
    ],
)
def test_the_binary_header_is_consumed(data: bytes, rest: bytes, here: Path, *, binary: bool) -> None:
    (here / "a").write_bytes(data)
    with open_rx("a") as file:
        assert isinstance(file, io.BufferedIOBase)
        assert (file.binary, file.kind, file.rxfilename, file.tell()) == (
            binary,
            "file",
            "a",
            len(data) - len(rest),
        )
        assert file.read() == rest
    with open_rx("a", header=False) as file:
        assert (file.binary, file.read()) == (None, data)
    assert file.close() is True


@pytest.mark.parametrize("data", [b"\0", b"\0A", b"\0\0B"])
def test_half_a_header_is_an_error_with_the_byte(data: bytes, here: Path) -> None:
    (here / "a").write_bytes(b"utt1 " + data)
    with pytest.raises(sk.errors.CorruptObject, match=r"^a: byte [56]: expected the binary header"):
        open_rx("a:5")
    with open_rx("a:5", header=False) as file:
        assert file.read() == data


def test_an_offset_is_a_byte_of_the_file(here: Path) -> None:
    (here / "a").write_bytes(b"utt1 \0Bgood day utt2 5 \n")
    with open_rx("a:5") as file:
        assert (file.binary, file.kind, file.tell()) == (True, "offset", 7)
        assert file.read(8) == b"good day"
        assert file.tell() == 15
        assert file.seek(0) == 0
        assert file.readline() == b"utt1 \0Bgood day utt2 5 \n"
    with open_rx("a:21") as file:
        assert (file.binary, file.read()) == (False, b"5 \n")
    with open_rx("a:24") as file:
        assert file.read() == b""


@pytest.mark.parametrize("offset", ["25", "99999999999999999999999", "9" * 5000])
def test_an_offset_behind_the_end_is_an_error(offset: str, here: Path) -> None:
    (here / "a").write_bytes(b"x" * 24)
    with pytest.raises(sk.errors.CorruptTable, match=r"the file has 24 bytes"):
        open_rx(f"a:{offset}")


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gz", "zst"])
@pytest.mark.parametrize("name", ["a.ark.gz", "a.ark"])
def test_compressed_files_are_found_by_their_content(compress: Any, name: str, here: Path) -> None:
    (here / name).write_bytes(compress(b"utt1 \0B") + compress(b"good day"))
    with open_rx(name) as file:
        assert (file.binary, file.read()) == (False, b"utt1 \0Bgood day")
    with open_rx(f"{name}:5") as file:
        assert (file.binary, file.tell(), file.read()) == (True, 7, b"good day")
    with open_rx(f"{name}:15") as file:
        assert file.read() == b""
    with pytest.raises(sk.errors.CorruptTable, match="the file has 15 bytes"):
        open_rx(f"{name}:16")
    (here / name).write_bytes(compress(b"good day")[:-2])
    with pytest.raises(sk.errors.UnsupportedFormat, match="cannot be decompressed"), open_rx(name) as file:
        file.read()


@pytest.mark.usefixtures("here")
def test_an_offset_into_zstd_frames_reads_one_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"".join(b"%09d\n" % number for number in range(400_000))
    with open("a.zst", "wb") as written:
        sizes = write_frames(written, [content], level=1)
    assert len(sizes) == 4
    read: list[int] = []

    class Counting(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(-1 if size is None else size)
            read.append(len(data))
            return data

    def opened(path: str, *, regular: bool) -> io.FileIO:
        assert not regular
        return Counting(path)

    monkeypatch.setattr(opening, "open_local", opened)
    bounds = np.cumsum([0, *(size for _, size in sizes)]).tolist()
    for offset in {0, 5, *bounds, *(each - 1 for each in bounds[1:]), *(each + 1 for each in bounds[:-1])}:
        read.clear()
        with open_rx(f"a.zst:{offset}") as file:
            assert file.tell() == offset
            assert file.read(20) == content[offset : offset + 20]
            assert file.tell() == min(offset + 20, len(content))
        assert sum(read) <= 2 * max(size for size, _ in sizes)
    for offset in (len(content) + 1, 10**12):
        with pytest.raises(sk.errors.CorruptTable, match=f"the file has {len(content):,} bytes"):
            open_rx(f"a.zst:{offset}")


def test_a_table_of_frames_that_is_none_is_no_matter(here: Path) -> None:
    with io.BytesIO() as file:
        write_frames(file, [b"good day\n"], level=1)
        data = file.getvalue()
    for changed in (data[:-1], data[:-17] + bytes(8) + data[-9:], zstandard.compress(b"more\n") + data):
        (here / "a").write_bytes(changed)
        content = b"".join(inflated([changed], "zst", "a")) if changed != data[:-1] else b"good day\n"
        with open_rx("a:2") as opened:
            assert opened.read(6) == content[2:8]


def test_a_plain_file_with_the_name_of_a_compressed_one_is_plain(here: Path) -> None:
    (here / "a.gz").write_bytes(b"plain")
    with open_rx("a.gz") as file:
        assert file.read() == b"plain"


def test_a_path_object_is_a_name(here: Path) -> None:
    with open_wx(here / "a") as sink:
        sink.write(b"good")
    with open_rx(here / "a") as file:
        assert file.read() == b"good"


def test_a_fifo_is_read_forward(here: Path) -> None:
    os.mkfifo("a")
    writer = threading.Thread(target=(here / "a").write_bytes, args=(b"\0Bgood day",))
    writer.start()
    with open_rx("a") as file:
        assert (file.binary, file.seekable(), file.read(), file.tell()) == (True, False, b"good day", 10)
    writer.join()


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "cat pipe |", "gunzip -c /dev/zero |", "socket"])
def test_lines_of_scripts_name_regular_files_alone(name: str, here: Path) -> None:
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        (here / "a.scp").write_text(f"u1 {name}\n")
        for read in (
            lambda: sk.open("scp:a.scp", format=sk.formats.Kaldi(holder="blob"))[0],
            lambda: sk.open("scp:a.scp"),
            lambda: RandomAccessReader("scp:a.scp", "blob")["u1"],
            lambda: SequentialReader("scp:a.scp", "blob").value,
        ):
            with pytest.raises(sk.SeekableError, match="a line of a script names regular files alone"):
                read()


def test_an_offset_of_a_device_is_refused() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="not a regular file"):
        open_rx("/dev/zero:3")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no.ark", "the folder '{}' has no file of this name"),
        ("no.ark:12", "there is no file 'no.ark': the folder '{}' has no file of this name"),
        ("data/no/a/b.ark", "the folder 'data/no' does not exist (relative paths begin at '{}')"),
        ("{}/data/no/a.ark", "the folder '{}/data/no' does not exist"),
        ("file/a.ark", "the folder 'file' is not a folder"),
        ("data", "it is a folder"),
        ("data:3", "it is a folder"),
        ("link", "it is a link to 'gone', which does not exist"),
        (":12", "the path is empty"),
        ("x" * 5000, "has no file of this name"),
    ],
)
def test_a_missing_file_is_an_error_with_the_nearest_reason(name: str, reason: str, here: Path) -> None:
    (here / "data").mkdir()
    (here / "file").write_bytes(b"")
    (here / "link").symlink_to("gone")
    with pytest.raises(FileNotFoundError) as caught:
        open_rx(name.format(here))
    assert isinstance(caught.value, sk.DataNotFound)
    assert str(caught.value).endswith(reason.format(here)) or reason.format(here) in str(caught.value)


def test_a_file_whose_name_looks_like_an_offset_is_named(here: Path) -> None:
    (here / "a:12").write_bytes(b"")
    with pytest.raises(sk.DataNotFound, match="the digits of 'a:12' are read as an offset"):
        open_rx("a:12")


def test_names_that_are_no_rxfilenames_are_refused() -> None:
    for name in ("| a", " a", "ark:a", "a\0"):
        with pytest.raises(sk.errors.InvalidArgument, match="is not an rxfilename"):
            open_rx(name)
    with pytest.raises(sk.errors.WrongType):
        open_rx(b"a")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["file:///data/a.ark", "file:///data/a.ark:12"])
def test_the_address_of_a_local_file_is_refused_by_name(name: str) -> None:
    with pytest.raises(sk.errors.UnsupportedFormat, match="is an address"):
        open_rx(name)


@pytest.mark.parametrize("name", ["s3://bucket/a.ark", "hf://datasets/a", "file:///data/a.ark"])
def test_addresses_are_not_written(name: str) -> None:
    with pytest.raises(sk.errors.UnsupportedFormat, match="is an address"):
        open_wx(name)


def test_files_are_closed_and_no_descriptor_stays(here: Path) -> None:
    (here / "a").write_bytes(b"\0A")
    (here / "b").write_bytes(gzip.compress(b"good"))
    before = os.listdir("/proc/self/fd")
    for name in ("a", "b:99"):
        with pytest.raises(sk.errors.CorruptTable):
            open_rx(name)
    for name in ("b", "cat a |"):
        open_rx(name, header=False).close()
    file = open_rx("b")
    del file
    sink = open_wx("c")
    del sink
    assert os.listdir("/proc/self/fd") == before


def test_large_files_are_read_in_any_sizes(here: Path) -> None:
    data = b"a" + os.urandom(300_000)  # Behind a NUL a binary header is expected.
    (here / "a").write_bytes(gzip.compress(data))

    @given(st.lists(st.integers(0, 200_000), max_size=5))
    def check(sizes: list[int]) -> None:
        with open_rx("a") as file:
            found = b"".join(file.read(size) for size in sizes)
            assert file.tell() == len(found)
            assert found + file.read() == data

    check()


# ---- standard streams


class Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BufferedReader(io.BytesIO(data))


@pytest.mark.parametrize("name", ["-", ""])
def test_standard_input(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b"\0Bgood day"))
    with open_rx(name) as file:
        assert (file.binary, file.kind, file.read(), file.tell()) == (True, "stdin", b"good day", 10)
        assert file.name == "<standard input>"
    assert not sys.stdin.buffer.closed


@pytest.mark.parametrize("size", [0, 1, 4, 100_000])
def test_several_readers_of_standard_input_go_on_after_each_other(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(size)
    monkeypatch.setattr(sys, "stdin", Stdin(b"\0B" + data + b"\0Bsecond" + b"third"))
    with open_rx("-") as file:
        assert file.binary
        assert file.read(size) == data
    with open_rx("-") as file:
        assert file.binary
        assert file.read(6) == b"second"
    with open_rx("-") as file:
        assert not file.binary
        assert file.read() == b"third"
    with open_rx("-") as file:
        assert file.read() == b""


def test_standard_input_without_bytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for stdin in (None, io.StringIO("text")):
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(sk.errors.InvalidArgument, match="standard input has no bytes"):
            open_rx("-")


def test_standard_streams_of_a_process() -> None:
    code = (
        "from seekable.kaldi import open_rx, open_wx\n"
        "print('text before')\n"
        "with open_rx('-') as file, open_wx('-', binary=file.binary) as sink:\n"
        "    sink.write(file.read())\n"
        "    assert (sink.kind, sink.tell()) == ('stdout', 10)\n"
        "print('text behind')"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"\0Bgood day", capture_output=True, check=True)
    assert done.stdout == b"text before\n\0Bgood daytext behind\n"


def test_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    for name in ("-", ""):
        with open_wx(name) as file:
            file.write(b"good day")
    assert capsysbinary.readouterr().out == b"\0Bgood day" * 2


# ---- writing


@pytest.mark.parametrize(
    ("options", "data"),
    [
        ({}, b"\0Bx"),
        ({"binary": False}, b"x"),
        ({"header": False}, b"x"),
        ({"binary": False, "header": True}, b"x"),
    ],
)
@pytest.mark.parametrize("atomic", [False, True])
def test_the_header_is_written_for_binary_objects(
    options: dict[str, bool], data: bytes, here: Path, *, atomic: bool
) -> None:
    with open_wx("a", atomic=atomic, **options) as file:  # type: ignore[arg-type]
        assert isinstance(file, WxFile)
        assert (file.binary, file.kind, file.wxfilename) == (options.get("binary", True), "file", "a")
        file.write(b"x")
        assert file.tell() == len(data)
    assert (here / "a").read_bytes() == data
    assert os.listdir(here) == ["a"]


def test_an_atomic_file_appears_when_it_is_complete(here: Path) -> None:
    (here / "a").write_bytes(b"old")
    with open_wx("a", atomic=True) as file:
        file.write(b"new" * 100_000)
        assert (here / "a").read_bytes() == b"old"
    assert (here / "a").read_bytes() == b"\0B" + b"new" * 100_000
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((here / "a").stat().st_mode) == 0o666 & ~umask


def test_an_atomic_file_that_is_not_finished_leaves_nothing(here: Path) -> None:
    (here / "a").write_bytes(b"old")
    with contextlib.suppress(ZeroDivisionError), open_wx("a", atomic=True) as file:
        file.write(b"new")
        _ = 1 / 0
    file = open_wx("a", atomic=True)
    file.write(b"new")
    del file
    file = open_wx("b", atomic=True)
    file.discard()
    file.discard()
    assert file.close() is True
    assert os.listdir(here) == ["a"]
    assert (here / "a").read_bytes() == b"old"


def test_an_atomic_file_behind_a_link_leaves_the_link(here: Path) -> None:
    (here / "folder").mkdir()
    (here / "folder" / "a").write_bytes(b"old")
    (here / "a").symlink_to("folder/a")
    with open_wx("a", atomic=True) as file:
        file.write(b"new")
    assert (here / "a").is_symlink()
    assert (here / "folder" / "a").read_bytes() == b"\0Bnew"


def test_a_child_process_leaves_the_files_of_its_parent(here: Path) -> None:
    file = open_wx("a", atomic=True)
    file.write(b"good day")
    child = os.fork()
    if not child:
        del file
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    file.close()
    assert (here / "a").read_bytes() == b"\0Bgood day"


@pytest.mark.parametrize("name", ["-", "| cat", "/dev/null"])
def test_atomic_is_for_files(name: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="atomic=True"):
        open_wx(name, atomic=True, pipes="allow")


@pytest.mark.parametrize("atomic", [False, True])
def test_a_full_disk_is_an_error(here: Path, monkeypatch: pytest.MonkeyPatch, *, atomic: bool) -> None:
    if atomic:
        file = open_wx("a", atomic=True)
        monkeypatch.setattr(os, "fsync", lambda _: os.stat("/no such file"))
    else:
        file = open_wx("/dev/full")
    file.write(b"x")
    with pytest.raises(OSError, match=r"No space left|No such file"):
        file.close()
    assert file.closed
    assert os.listdir(here) == []


@pytest.mark.parametrize("atomic", [False, True])
def test_a_file_that_cannot_be_made_is_an_error(here: Path, *, atomic: bool) -> None:
    with pytest.raises(sk.DataNotFound, match="the folder 'no' does not exist"):
        open_wx("no/a", atomic=atomic)
    (here / "data").mkdir()
    with (
        pytest.raises(OSError, match="is a folder|not a regular file" if not atomic else "")
        if not atomic
        else (pytest.raises(sk.errors.InvalidArgument, match="not a regular file"))
    ):
        open_wx("data", atomic=atomic)
    for name in ("a |", "a:12", "scp:a", " a"):
        with pytest.raises(sk.errors.InvalidArgument, match="is not a wxfilename"):
            open_wx(name, atomic=atomic)


def test_files_that_this_user_may_not_open_are_errors(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    (here / "a").write_bytes(b"")
    monkeypatch.setattr("seekable.formats.kaldi.files.local_files.ReadFile", refused)
    monkeypatch.setattr("seekable.formats.kaldi.files.open_named.WrittenFile", refused)
    with pytest.raises(sk.errors.AccessDenied, match="'a' cannot be read by this user"):
        open_rx("a")
    with pytest.raises(sk.errors.AccessDenied, match="'a' cannot be written by this user"):
        open_wx("a")


@given(data=st.binary(max_size=100), binary=st.booleans(), atomic=st.booleans())
def test_what_is_written_is_read(data: bytes, *, binary: bool, atomic: bool) -> None:
    if not binary and data.startswith((b"\0", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")):
        return  # That is no text.
    path = f"/dev/shm/seekable-{os.getpid()}" if os.path.isdir("/dev/shm") else f"seekable-{os.getpid()}"
    try:
        with open_wx(path, binary=binary, atomic=atomic) as sink:
            sink.write(data)
        with open_rx(path) as file:
            assert (file.binary, file.read()) == (binary, data)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def test_kaldi_native_io_reads_the_same_single_objects(here: Path) -> None:
    kn = pytest.importorskip("kaldi_native_io")
    vector = b"\4\2\0\0\0" + b"\4\1\0\0\0" + b"\4\2\0\0\0"
    with open_wx("a") as sink:
        sink.write(vector)
    (here / "b.ark").write_bytes(b"utt1 \0B" + vector)
    (here / "t").write_bytes(b"1 2\n")
    for name in ("a", "b.ark:5", "cat a |", "t"):
        assert kn.read_int32_vector(name) == [1, 2]
        with open_rx(name) as file:
            assert file.read() == (vector if file.binary else b"1 2\n")
    for name in ("no", "|a", " a", "scp:a", "a|b"):
        with pytest.raises((RuntimeError, ValueError)):
            kn.read_int32_vector(name)
        with pytest.raises(sk.SeekableError):
            open_rx(name)


@pytest.mark.usefixtures("here")
def test_the_classes_are_what_the_functions_return() -> None:
    with open_wx("a") as sink:
        assert type(sink) is WxFile
    with open_rx("a") as file:
        assert type(file) is RxFile


def test_what_was_read_stays_when_its_file_is_written_again(here: Path) -> None:
    old = np.arange(40_000, dtype=np.float32).reshape(-1, 40)
    with kaldi.Writer("ark,scp:a.ark,a.scp", "matrix") as writer:
        writer.write("utt1", old)
    os.chmod("a.ark", 0o640)
    (here / "link").symlink_to("a.ark")
    with kaldi.RandomAccessReader("scp:a.scp", "matrix") as reader:
        value = reader["utt1"]
        with kaldi.Writer("ark:link", "matrix") as writer:
            writer.write("utt1", old[:1])
        # The system ends a process that reads where a mapped file was cut.
        assert np.array_equal(value, old)
    assert (here / "link").is_symlink()
    assert (here / "a.ark").stat().st_mode & 0o777 == 0o640
    assert kaldi.read("a.ark:5", "matrix").shape == (1, 40)


def test_a_file_with_two_names_stays_one_file(here: Path) -> None:
    (here / "a").write_bytes(b"old")
    os.link("a", "b")
    with open_wx("a", binary=False) as file:
        file.write(b"new")
    assert (here / "b").read_bytes() == b"new"


@pytest.mark.parametrize("atomic", [False, True])
def test_a_file_that_is_written_again_keeps_its_mode(here: Path, *, atomic: bool) -> None:
    (here / "a").touch(0o600)
    with open_wx("a", atomic=atomic) as file:
        file.write(b"new")
    assert (here / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", ["/proc/self/mem", "/proc/self/clear_refs", "/proc/kmsg", "DIR"])
def test_an_error_of_the_system_names_the_file_and_the_byte(tmp_path: Path, path: str) -> None:
    """Nothing waits either: ``/proc/kmsg`` calls itself a regular file, and has no bytes for a long time."""
    error: type[sk.SeekableError]
    error, told = sk.errors.Unreachable, f"'{path}' cannot be read at byte 0: .* [(]E[A-Z]+[)]"
    if path == "DIR":
        path, error, told = str(tmp_path), sk.DataNotFound, "it is a folder"
    if not os.access(path, os.R_OK):
        pytest.skip(f"there is no {path} here that this user may read")
    script = tmp_path / "a.scp"
    script.write_text(f"u {path}\n")
    read: list[Callable[[], object]] = [
        lambda: kaldi.open_rx(path, header=False).read(),
        lambda: kaldi.read(path, "matrix"),
        lambda: list(kaldi.SequentialReader(f"ark:{path}", "matrix")),
        lambda: list(kaldi.SequentialReader(f"scp:{script}", "matrix")),
        lambda: kaldi.RandomAccessReader(f"ark:{path}", "matrix")["u"],
        lambda: kaldi.RandomAccessReader(f"scp:{script}", "matrix")["u"],
        lambda: kaldi.read_script(path),
    ]
    for call in read:
        with pytest.raises(error, match=told):
            call()
