"""Headers of writers other than Python, as literals of what matters, and archives by installed tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest
from tests.formats.tar.archives import END, head, listed, padded, pax, refused, walked

from seekable.formats.tar.walk import Walk
from seekable.index.build.content import ForwardFile

if TYPE_CHECKING:
    from pathlib import Path

LARGE = 9 << 30

LITERALS = {
    "bsdtar restricted pax, ustar": head(b"a.txt", 3),
    "bsdtar prefix": head(b"a.txt", 3, prefix=b"d/e"),
    "bsdtar 12 digits": head(b"a.txt", b"000000000003"),
    "busybox": head(b"a.txt", b"000000000003", magic="gnu"),
    "busybox long name": head(b"././@LongLink", 121, kind=b"L", magic="gnu")
    + padded(b"n" * 120 + b"\0")
    + head(b"n" * 100, 3),
    "gnu binary size": head(b"a.txt", b"\x80" + bytes(10) + b"\3", magic="gnu"),
    "gnu long link": head(b"././@LongLink", 6, kind=b"K", magic="gnu")
    + padded(b"b.txt\0")
    + head(b"a.txt", 3),
    "v7": head(b"a.txt", 3, kind=b"\0", magic="v7"),
    "contiguous": head(b"a.txt", 3, kind=b"7"),
    "gnu tar posix": pax(b"30 mtime=1700000000.123456789\n30 atime=1700000000.123456789\n")
    + head(b"a.txt", 3),
    "git archive": pax(b"14 comment=abc\n", b"g") + head(b"a.txt", 3),
    "solaris": pax(b"14 path=b.txt\n", b"X") + head(b"a.txt", 3),
    "name and time": pax(b"20 mtime=1700000000\n14 path=b.txt\n") + head(b"a.txt", 3),
    "size in the record": pax(b"10 size=3\n") + head(b"a.txt", 0),
    "names of both kinds": pax(b"14 path=b.txt\n")
    + head(b"L", 6, kind=b"L")
    + padded(b"c.txt\0")
    + head(b"a.txt", 3),
    "global header between": pax(b"14 path=b.txt\n") + pax(b"14 comment=abc\n", b"g") + head(b"a.txt", 3),
}


@pytest.mark.parametrize("which", LITERALS)
def test_literal_headers_are_read_as_tarfile_reads_them(which: str) -> None:
    data = head(b"first.txt", 0) + LITERALS[which] + padded(b"abc") + head(b"last.txt", 0) + END
    found = walked(data)[0]
    assert found == listed(data)
    assert [found[0][0], found[2][0]] == [b"first.txt", b"last.txt"]


def test_incremental_archives_of_gnu_have_no_prefix() -> None:
    times = b"15300441046\0" + b"15300441046\0"  # atime and ctime, where POSIX has the prefix
    data = head(b"a.cls", 3, magic="gnu", prefix=times) + padded(b"abc") + END
    assert [name for name, *_ in walked(data)[0]] == [b"a.cls"]


SKIPPED = {
    "directory": head(b"d/", 0, kind=b"5"),
    "directory with a size": head(b"d/", 4096, kind=b"5"),
    "directory of v7": head(b"d/", 0, kind=b"\0", magic="v7"),
    "fifo": head(b"f", 0, kind=b"6"),
    "character device": head(b"c", 0, kind=b"3"),
    "block device": head(b"b", 0, kind=b"4"),
    "directory of gnu -g": head(b"d/", 600, kind=b"D", magic="gnu") + padded(b"Ya.txt\0".ljust(600, b"\0")),
    "label of gnu -V": head(b"label", 0, kind=b"V", magic="v7"),
    "another vendor's": head(b"x", 5, kind=b"A") + padded(b"12345"),
    "long name of a directory": head(b"L", 3, kind=b"L") + padded(b"dd\0") + head(b"d/", 0, kind=b"5"),
}


@pytest.mark.parametrize("which", SKIPPED)
def test_what_is_no_file_is_skipped(which: str) -> None:
    data = head(b"a.txt", 0) + SKIPPED[which] + head(b"b.txt", 0) + END
    assert walked(data)[0] == [(b"a.txt", 0, 512, 0), (b"b.txt", len(data) - 1536, len(data) - 1024, 0)]


REFUSED = {
    "symbolic links": (
        head(b"l.txt", 0, kind=b"2", link=b"a.txt") + head(b"m.txt", 0, kind=b"2"),
        "byte 512: 'l.txt' is the first of 2 symbolic links, which have no data here",
    ),
    "sparse, gnu": (head(b"s", 0, kind=b"S", magic="gnu"), "byte 512: the member 's' is a sparse file"),
    "sparse, pax 0.0": (
        pax(b"22 GNU.sparse.size=99\n") + head(b"s", 0),
        "byte 1536: the member 's' is a sparse file",
    ),
    "sparse, pax 1.0": (
        pax(b"22 GNU.sparse.major=1\n21 GNU.sparse.name=s\n") + head(b"GNUSparseFile.0/s", 512),
        "byte 1536: the member 's' is a sparse file, whose holes are not in the archive",
    ),
    "volume": (head(b"v", 5, kind=b"M"), "byte 512: the member 'v' continues a file of another volume"),
    "hard link to nothing": (
        head(b"h.txt", 0, kind=b"1", link=b"z.txt"),
        "byte 512: the member 'h.txt' is a hard link to 'z.txt', which is no earlier file of this archive",
    ),
    "hard link to what comes later": (
        head(b"h.txt", 0, kind=b"1", link=b"z.txt") + head(b"z.txt", 0),
        "is a hard link to 'z.txt', which is no earlier file",
    ),
    "global name": (
        pax(b"14 path=b.txt\n", b"g"),
        "byte 512: a global PAX header that gives all later members",
    ),
    "global size": (pax(b"10 size=3\n", b"g"), "a global PAX header"),
    "two PAX headers": (pax(b"14 path=b.txt\n") * 2, "byte 1536: a second PAX header before one member"),
    "two PAX headers of times": (pax(b"20 mtime=1700000000\n") * 2, "byte 1536: a second PAX header"),
    "two long names": (
        (head(b"L", 3, kind=b"L") + padded(b"dd\0")) * 2,
        "a second long name before one member",
    ),
    "no long name": (head(b"L", 3, kind=b"L") + padded(b"\0"), "byte 512: an empty long name"),
    "empty name": (pax(b"8 path=\n"), "byte 512: the PAX record of the name is b''"),
    "damaged records": (pax(b"99 path=a\n"), "byte 512: the PAX records are damaged at their byte 0"),
    "PAX header of nothing": (
        pax(b"14 path=b.txt\n") + END,
        "byte 512: an extended header without its member: the end mark is at byte 1536",
    ),
    "huge records": (head(b"x", 1 << 32, kind=b"x"), "byte 512: an extended header of 4294967296 bytes"),
    "records that are cut": (
        head(b"x", 1 << 20, kind=b"x"),
        "byte 512: an extended header of 1048576 bytes is cut",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_cannot_be_read_in_place_is_refused_with_the_way_out(which: str) -> None:
    data, message = REFUSED[which]
    after = END if which == "records that are cut" else head(b"z.end", 0) + END
    told = refused(head(b"a.txt", 0) + data + after)
    assert message in told
    assert "the last good member is 'a.txt' at byte 0" in told


def test_links_lead_to_the_last_earlier_file_of_the_name() -> None:
    link = head(b"h.txt", 0, kind=b"1", link=b"a.txt")
    files = [head(b"a.txt", size) + padded(bytes(size)) for size in (1, 2)]
    chain = head(b"i.txt", 0, kind=b"1", link=b"h.txt")
    data = files[0] + link + files[1] + link + chain + END
    assert walked(data)[0] == listed(data)
    assert [(at, size) for *_, at, size in walked(data)[0]] == [
        (512, 1),
        (512, 1),
        (2048, 2),
        (2048, 2),
        (2048, 2),
    ]


def test_links_lead_to_members_of_earlier_runs() -> None:
    data = b"".join(head(b"%d.txt" % number, 0) for number in range(2500))
    links = [head(b"h%d.txt" % row, 0, kind=b"1", link=b"%d.txt" % row) for row in (0, 1023, 1024, 2499)]
    data = data + b"".join(links) + END
    assert walked(data)[0] == listed(data)


@pytest.mark.parametrize("size", [8**11 - 1, LARGE])
@pytest.mark.parametrize("form", ["binary", "digits", "pax", "pax-zero"])
def test_members_of_gigabytes(form: str, size: int, tmp_path: Path) -> None:
    digits = b"%012o" % size
    record = b"20 size=%d\n" % size
    record = b"%d%s" % (len(record), record[2:])
    before = {
        "binary": head(b"a.bin", b"\x80" + size.to_bytes(11, "big"), magic="gnu"),
        "digits": head(b"a.bin", digits),
        "pax": pax(record) + head(b"a.bin", digits),
        "pax-zero": pax(record) + head(b"a.bin", 0),
    }[form]
    path = tmp_path / "large.tar"
    with path.open("wb") as file:
        file.write(before)
        file.seek(-(-size // 512) * 512, os.SEEK_CUR)
        file.write(head(b"b.txt", 0) + END)
    with path.open("rb", buffering=0) as file:
        (run,) = Walk(ForwardFile(file, str(path), size=path.stat().st_size))
        expected = [(name, info.offset, info.offset_data, info.size) for name, info in members(path)]
    assert [
        *zip(run.names, run.starts.tolist(), run.payloads.tolist(), run.sizes.tolist(), strict=True)
    ] == expected
    assert run.sizes.tolist() == [size, 0]


def members(path: Path) -> list[tuple[bytes, tarfile.TarInfo]]:
    with tarfile.open(path) as tar:
        return [(info.name.encode(), info) for info in tar]


GNU_TAR = shutil.which("tar")
TOOLS = {
    **{f"gnu {form}": ["tar", f"--format={form}"] for form in ("v7", "oldgnu", "gnu", "ustar", "pax")},
    "gnu label": ["tar", "-V", "label"],
    "gnu comment": ["tar", "--format=pax", "--pax-option=comment=x"],
    "gnu incremental": ["tar", "-g", "snapshot"],
    **{f"bsdtar {form}": ["bsdtar", f"--format={form}"] for form in ("paxr", "ustar", "pax", "gnutar", "v7")},
    "busybox": ["busybox", "tar"],
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with names and sizes of all kinds, and a hard link."""
    folder = tmp_path / "tree"
    for number, name in enumerate(
        ["a.txt", "b/c.d.json", "x" * 99, "y" * 100, "z" * 120, "\u00e9.txt", "n\nl.txt"]
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * [0, 1, 1000][number % 3])
    os.link(folder / "b/c.d.json", folder / "b/linked.json")
    return tmp_path


@pytest.mark.parametrize("which", TOOLS)
def test_archives_of_tools(which: str, tree: Path) -> None:
    command = TOOLS[which]
    if not is_tool(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    subprocess.run([*command, "-cf", "a.tar", "tree"], cwd=tree, capture_output=True, check=False)
    data = (tree / "a.tar").read_bytes()
    found, taken = walked(data)
    assert not taken.warnings
    if which != "gnu incremental":
        assert found == listed(data)
    dropped = {"v7": 3, "ustar": 1}  # Names of 100 bytes and more; those without a slash to split at.
    assert len(found) == 8 - dropped.get(which.rpartition(" ")[2], 0)
    for name, _, at, size in found:
        assert data[at : at + size] == (tree / os.fsdecode(name)).read_bytes()


def is_tool(name: str) -> bool:
    """Return True if a program is here; ``tar`` must be GNU's."""
    if shutil.which(name) is None:
        return False
    return (
        name != "tar"
        or b"GNU" in subprocess.run([name, "--version"], capture_output=True, check=False).stdout
    )


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--format=pax", "--sparse-version=0.0"],
        ["--format=pax", "--sparse-version=0.1"],
        ["--format=pax"],
    ],
)
def test_sparse_members_of_gnu_tar_are_refused(options: list[str], tmp_path: Path) -> None:
    if not is_tool("tar"):
        pytest.skip("GNU tar is not installed")
    with (tmp_path / "s.bin").open("wb") as file:
        file.truncate(1 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"x")
    subprocess.run(["tar", *options, "-S", "-cf", "a.tar", "s.bin"], cwd=tmp_path, check=True)
    assert "the member 's.bin' is a sparse file" in refused((tmp_path / "a.tar").read_bytes())


@pytest.mark.parametrize("times", [True, False])
def test_archives_of_webdataset(times: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter
    webdataset = pytest.importorskip("webdataset")
    path = tmp_path / "a.tar"
    with webdataset.TarWriter(str(path), **({} if times else {"mtime": 0})) as writer:
        for row in range(5):
            writer.write({"__key__": f"{row:06}", "txt": "x" * row, "json": [row], "\u00e9": b"1"})
    data = path.read_bytes()
    assert walked(data)[0] == listed(data)
    assert (data[156:157] == b"x") == times
