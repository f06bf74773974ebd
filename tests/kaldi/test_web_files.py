"""Files of web servers: read by ranges, from offsets, compressed, from servers that fail or lack ranges."""

from __future__ import annotations

import gzip
import io
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import numpy as np
import pytest
import zstandard
from tests.kaldi.holder_cases import dumped

import seekable as sk
from seekable import kaldi
from seekable.formats.kaldi.files.web_file import WebFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MATRIX = np.arange(30_000 * 40, dtype="f4").reshape(-1, 40)


class Site:
    """What a server has, and how it answers."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.has_ranges = True
        self.has_length = True
        self.etag = '"one"'
        self.authorization = ""
        self.statuses: list[int] = []
        """The answers to the next requests, before others succeed."""
        self.short: list[int] = []
        """The numbers of bytes after which the next bodies end."""
        self.address = ""


class Handler(BaseHTTPRequestHandler):
    site: Site

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.site.authorization = self.headers.get("Authorization", "")
        self.site.requests.append((self.path, wanted))
        data = self.site.files.get(self.path)
        if self.site.statuses and (status := self.site.statuses.pop(0)):
            self.answer(status, b"", {})
        elif data is None:
            self.answer(404, b"no", {})
        elif self.path.startswith("/moved"):
            self.answer(302, b"", {"Location": data.decode()})
        elif wanted and self.site.has_ranges:
            first, last = map(int, re.findall("[0-9]+", wanted))
            if first >= len(data):
                self.answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            part = data[first : last + 1]
            stated = f"bytes {first}-{first + len(part) - 1}/{len(data)}"
            self.answer(206, part, {"Content-Range": stated, "ETag": self.site.etag})
        else:
            self.answer(200, data, {"ETag": self.site.etag})

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        if self.site.has_length:
            self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: self.site.short.pop(0)] if self.site.short and body else body)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setenv("no_proxy", "*")
    found = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"site": found}))
    found.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def ark(site: Site) -> str:
    """The address of an archive of two matrices of 4.8 MB, at the bytes 5 and 4,800,025."""
    entry = dumped("matrix", MATRIX)
    site.files["/x.ark"] = b"utt1 " + entry + b"utt2 " + dumped("matrix", MATRIX + 1)
    return f"{site.address}/x.ark"


def second() -> int:
    return 10 + len(dumped("matrix", MATRIX))


def test_an_offset_reads_one_object(site: Site, ark: str) -> None:
    assert np.array_equal(kaldi.read(f"{ark}:5", "matrix"), MATRIX)
    assert np.array_equal(kaldi.read(f"{ark}:{second()}", "matrix"), MATRIX + 1)
    assert site.requests[0] == ("/x.ark", f"bytes=5-{5 + (256 << 10) - 1}")
    with kaldi.open_rx(f"{ark}:{second()}") as file:
        assert (file.binary, file.kind, file.tell()) == (True, "offset", second() + 2)
        assert file.read(3) == b"FM "
        assert file.seek(0) == 0
        assert file.read(5) == b"utt1 "


def test_a_range_fetches_only_its_part(site: Site, ark: str) -> None:
    found = kaldi.read(f"{ark}:5[20000:20009,3:4]", "matrix")
    assert np.array_equal(found, MATRIX[20000:20010, 3:5])
    assert len(site.requests) == 2
    assert sum(int(last) - int(first) + 1 for first, last in spans(site)) <= 2 * (256 << 10)


def spans(site: Site) -> list[list[str]]:
    return [re.findall("[0-9]+", wanted) for _, wanted in site.requests]


@pytest.mark.parametrize("has_ranges", [True, False])
@pytest.mark.parametrize("has_length", [True, False])
def test_an_archive_is_read_forward(site: Site, ark: str, *, has_ranges: bool, has_length: bool) -> None:
    site.has_ranges, site.has_length = has_ranges, has_length
    with kaldi.SequentialReader(f"ark:{ark}", "matrix") as reader:
        keys = [(key, float(value[0, 0])) for key, value in reader]
    assert keys == [("utt1", 0.0), ("utt2", 1.0)]
    # Requests that follow each other have twice as many bytes each.
    assert len(site.requests) == (6 if has_ranges else 1)
    assert np.array_equal(kaldi.read(f"{ark}:{second()}", "matrix"), MATRIX + 1)


def test_a_script_of_addresses(site: Site, ark: str, tmp_path: Path) -> None:
    site.files["/x.scp"] = f"utt1 {ark}:5\nutt2 {ark}:{second()}[0:1]\n".encode()
    for rspecifier in (f"scp:{site.address}/x.scp", f"scp:{tmp_path}/x.scp"):
        (tmp_path / "x.scp").write_bytes(site.files["/x.scp"])
        with kaldi.RandomAccessReader(rspecifier, "matrix") as reader:
            assert reader["utt2"].tolist() == (MATRIX[:2] + 1).tolist()
            assert np.array_equal(reader["utt1"], MATRIX)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_files(suffix: str, site: Site) -> None:
    data = b"utt1 " + dumped("int32", 5) + b"utt2 " + dumped("int32", 6)
    packed = gzip.compress(data) if suffix == ".gz" else zstandard.compress(data)
    site.files[f"/x.ark{suffix}"] = packed
    address = f"{site.address}/x.ark{suffix}"
    assert kaldi.read(f"{address}:17", "int32") == 6
    with kaldi.SequentialReader(f"ark:{address}", "int32") as reader:
        assert list(reader) == [("utt1", 5), ("utt2", 6)]
    site.files[f"/x.ark{suffix}"] = packed[:-5]
    with pytest.raises(sk.SeekableError, match=f"x.ark{suffix}"):
        list(kaldi.SequentialReader(f"ark:{address}", "int32"))


@pytest.mark.parametrize("has_ranges", [True, False])
def test_the_end_of_a_file(site: Site, *, has_ranges: bool) -> None:
    site.has_ranges = has_ranges
    site.files |= {"/empty": b"", "/ten": bytes(range(10))}
    with kaldi.open_rx(f"{site.address}/empty", header=False) as file:
        assert file.read() == b""
    with kaldi.open_rx(f"{site.address}/ten:10", header=False) as file:
        assert file.read() == b""
    with kaldi.open_rx(f"{site.address}/ten:8", header=False) as file:
        assert file.read() == b"\x08\x09"
    with pytest.raises(
        sk.errors.CorruptTable, match=r"cannot be read from byte 11 on: the file has 10 bytes"
    ):
        kaldi.open_rx(f"{site.address}/ten:11")
    site.files["/torn"] = dumped("matrix", MATRIX[:10])[:-1]
    with pytest.raises(sk.errors.CorruptObject, match=r"/torn: byte (15|1614): expected 10 x 40 elements"):
        kaldi.read(f"{site.address}/torn", "matrix")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, sk.DataNotFound),
        (410, sk.DataNotFound),
        (401, sk.errors.AccessDenied),
        (403, sk.errors.AccessDenied),
        (400, sk.errors.Unreachable),
    ],
)
def test_a_refusal_is_not_asked_again(status: int, error: type[Exception], site: Site, ark: str) -> None:
    site.statuses = [status]
    with pytest.raises(error, match=f"the server answers {status}|it answers {status}"):
        kaldi.open_rx(ark)
    assert len(site.requests) == 1


@pytest.mark.parametrize("statuses", [[503], [500, 429, 502], [0, 503, 0, 504]])
def test_a_passing_failure_is_tried_again(statuses: list[int], site: Site, ark: str) -> None:
    site.statuses = statuses
    assert np.array_equal(kaldi.read(f"{ark}:5", "matrix"), MATRIX)


def test_a_server_that_always_fails(site: Site, ark: str) -> None:
    site.statuses = [503] * 10
    with pytest.raises(sk.errors.Unreachable, match=r"cannot be read from byte 5 on: it answers 503"):
        kaldi.read(f"{ark}:5", "matrix")
    assert len(site.requests) == 4


def test_a_body_that_ends_too_early_is_fetched_again(site: Site, ark: str) -> None:
    site.short = [1000, 5]
    assert np.array_equal(kaldi.read(f"{ark}:5", "matrix"), MATRIX)
    site.short = [1000] * 10
    with pytest.raises(sk.errors.Unreachable, match="cannot be read"):
        kaldi.read(f"{ark}:5", "matrix")


def test_a_body_without_ranges_that_ends_too_early(site: Site, ark: str) -> None:
    site.has_ranges = False
    site.short = [3_000_000] * 10
    with pytest.raises(sk.errors.Unreachable, match="it ended after"):
        kaldi.read(f"{ark}:5", "matrix")


def test_a_file_that_changes_while_it_is_read(site: Site, ark: str) -> None:
    with kaldi.open_rx(f"{ark}:5") as file:
        site.etag = '"two"'
        with pytest.raises(sk.IndexStale, match="was changed on its server"):
            file.read()


@pytest.mark.usefixtures("site")
def test_no_server() -> None:
    with pytest.raises(sk.errors.Unreachable, match="cannot be read from byte 0 on"):
        kaldi.open_rx("http://127.0.0.1:1/x.ark")


def test_a_user_and_options_are_sent_and_never_shown(site: Site, ark: str) -> None:
    address = ark.replace("//", "//me:PLANTED@")
    with kaldi.open_rx(f"{address}:5") as file:
        assert file.binary
        assert "PLANTED" not in f"{file.rxfilename!r}"
    assert site.authorization == "Basic bWU6UExBTlRFRA=="
    with pytest.raises(sk.DataNotFound) as caught:
        kaldi.open_rx(f"{address}-missing?sig=PLANTED")
    assert "PLANTED" not in str(caught.value)
    options = {"headers": {"Authorization": "Bearer of-options"}}
    assert np.array_equal(kaldi.read(f"{ark}:5", "matrix", storage_options=options), MATRIX)
    assert site.authorization == "Bearer of-options"


def test_redirects_and_names_with_spaces(site: Site) -> None:
    site.files |= {"/a%20b.ark": b"5 \n", "/moved": f"{site.address}/a%20b.ark".encode()}
    assert kaldi.read(f"{site.address}/a b.ark", "int32") == 5
    assert kaldi.read(f"{site.address}/moved", "int32") == 5
    assert kaldi.read(f"{site.address}/moved:0", "int32") == 5


def test_addresses_are_not_written(site: Site) -> None:
    with pytest.raises(sk.errors.UnsupportedFormat, match="is an address"):
        kaldi.open_wx(f"{site.address}/x.ark")
    with pytest.raises(sk.errors.UnsupportedFormat, match="is an address"):
        kaldi.Writer(f"ark:{site.address}/x.ark", "int32")
    assert site.requests == []


def test_a_raw_file_seeks(site: Site) -> None:
    site.files["/ten"] = bytes(range(10))
    with WebFile(f"{site.address}/ten", start=3) as file:
        assert (file.readable(), file.seekable(), file.tell(), file.size) == (True, True, 3, 10)
        assert file.read(2) == b"\3\4"
        assert file.seek(-1, io.SEEK_END) == 9
        assert file.read() == b"\t"
        assert file.seek(-2, io.SEEK_CUR) == 8
        assert file.read(1) == b"\x08"
    site.has_ranges = False
    with WebFile(f"{site.address}/ten", start=3) as file:
        assert not file.seekable()
        with pytest.raises(io.UnsupportedOperation, match="read forward"):
            file.seek(0)
        assert file.read() == bytes(range(3, 10))
