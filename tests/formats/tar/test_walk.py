"""The walk finds what Python's tarfile finds, and resolves hard links."""

from __future__ import annotations

import random
import tarfile
from typing import Literal, get_args

import pytest
from tests.formats.tar.archives import archive, listed, walked

NAMES = (
    *(
        "a.txt",
        "d/b.txt",
        "x" * 99,
        "x" * 100,
        "x" * 101,
        "y" * 120,
        "d/" * 50 + "z.txt",
        "d/" * 120 + "z" * 20,
    ),
    *(
        "w" * 254,
        "v" * 260,
        "d/" * 180 + "u" * 20,
        "\u00e9.txt",
        "e\u0301.txt",
        "\udcff\udcfe.bin",
        "sp ace.txt",
    ),
    *("new\nline.txt", "./lead.txt", "._x.txt", ".hidden", "nodot", "a.b.c", "UP.TXT"),
)
Form = Literal[0, 1, 2]
USTAR, GNU, PAX = get_args(Form)
FORMATS: dict[str, tuple[Form, float]] = {
    "ustar": (USTAR, 0),
    "gnu": (GNU, 0),
    "pax": (PAX, 0),
    "pax-times": (PAX, 1.5),
}


@pytest.mark.parametrize("form", FORMATS)
def test_members_are_those_of_tarfile(form: str) -> None:
    rng = random.Random(form)
    for _ in range(20):
        data = drawn(rng, *FORMATS[form])
        found, walk = walked(data)
        assert found == listed(data)
        assert not walk.warnings
        assert walk.end is not None
        assert not data[walk.end :].strip(b"\0")


def drawn(rng: random.Random, form: Form, mtime: float) -> bytes:
    """Return an archive of files, hard links, folders and fifos with names and sizes of all kinds."""
    members: list[tarfile.TarInfo] = []
    files: list[str] = []
    for number in range(rng.randrange(1, 40)):
        info = tarfile.TarInfo(f"{number}/{rng.choice(NAMES)}")
        info.mtime = mtime
        kind = rng.random()
        if kind < 0.1:
            info.type = tarfile.DIRTYPE
        elif kind < 0.2 and files:
            info.type, info.linkname = tarfile.LNKTYPE, rng.choice(files)
        elif kind < 0.25:
            info.type = tarfile.FIFOTYPE
        else:
            info.size = rng.choice([0, 1, 511, 512, 513, 3000, 70000])
        if fits(info, form):
            members.append(info)
            files += [info.name] * info.isreg()
    return archive(members, format=form)


def fits(info: tarfile.TarInfo, form: Form) -> bool:
    try:
        info.tobuf(form)
    except (ValueError, UnicodeEncodeError):
        return False
    return True
