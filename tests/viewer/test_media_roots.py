"""Files that records name: read below the folders that were given, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seekable.errors import AccessDenied, BadValue, DataNotFound
from seekable.viewer.media import MediaRoots, media_roots


@pytest.fixture
def roots(tmp_path: Path) -> MediaRoots:
    """Two folders with files, beside a folder that nobody gave."""
    for name, text in {
        "one/a.wav": "a",
        "one/sub/b.wav": "b",
        "two/c.wav": "c",
        "onemore/secret": "s",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return media_roots([tmp_path / "one", tmp_path / "two"])


def text_of(roots: MediaRoots, name: str) -> bytes:
    with roots.open(name) as file:
        return file.read()


@pytest.mark.parametrize(
    ("name", "text"), [("a.wav", b"a"), ("sub/b.wav", b"b"), ("c.wav", b"c"), ("sub/../a.wav", b"a")]
)
def test_names_below_a_folder_are_read(roots: MediaRoots, tmp_path: Path, name: str, text: bytes) -> None:
    assert text_of(roots, name) == text
    real = tmp_path / ("two" if text == b"c" else "one") / name
    assert text_of(roots, str(real)) == text


@pytest.mark.parametrize(
    "name", ["../onemore/secret", "/etc/passwd", "sub/../../onemore/secret", "..", ".", "/"]
)
def test_names_that_leave_the_folders_are_refused(roots: MediaRoots, name: str) -> None:
    with pytest.raises(AccessDenied, match=r"lies outside of .*--media-root"):
        roots.open(name)


def test_whether_a_file_outside_exists_is_not_told(roots: MediaRoots, tmp_path: Path) -> None:
    messages = set()
    for name in ["secret", "absent"]:
        with pytest.raises(AccessDenied) as refused:
            roots.open(str(tmp_path / "onemore" / name))
        messages.add(str(refused.value).replace(name, "NAME"))
    assert len(messages) == 1


def test_links_are_followed_before_the_folders_are_compared(roots: MediaRoots, tmp_path: Path) -> None:
    (tmp_path / "one/out").symlink_to(tmp_path / "onemore/secret")
    (tmp_path / "one/folder").symlink_to(tmp_path / "onemore")
    (tmp_path / "one/in").symlink_to(tmp_path / "two/c.wav")
    (tmp_path / "one/round").symlink_to(tmp_path / "one/round")
    for name in ["out", "folder/secret"]:
        with pytest.raises(AccessDenied, match="lies outside"):
            media_roots([tmp_path / "one"]).open(name)
        with pytest.raises(DataNotFound, match="is not below"):
            roots.open(name)
    with pytest.raises(BadValue, match="cannot be opened"):
        roots.open("round")
    assert text_of(roots, str(tmp_path / "one" / "in")) == b"c"


def test_a_folder_that_is_a_link_is_its_real_path(roots: MediaRoots, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "two")
    linked = media_roots([tmp_path / "link"])
    assert linked.folders == roots.folders[1:]
    assert text_of(linked, str(tmp_path / "link" / "c.wav")) == b"c"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("", "is empty"),
        (" ", "is empty"),
        ("touch /tmp/x |", "is a command"),
        ("| cat", "is a command"),
        ("https://example.org/a.wav", "is an address"),
        ("file:///etc/passwd", "is an address"),
        ("a\0.wav", "has a NUL"),
        ("\ud83d.wav", "has a lone surrogate"),
        ("a" * 5000, "cannot be opened"),
    ],
)
def test_what_is_no_path_is_refused(roots: MediaRoots, name: str, what: str) -> None:
    with pytest.raises(BadValue, match=what):
        roots.open(name)


def test_only_regular_files_are_read(roots: MediaRoots, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "one" / "pipe")
    for name in ["pipe", "sub"]:
        with pytest.raises(AccessDenied, match="is no regular file"):
            roots.open(name)


def test_a_file_of_other_users_is_named(roots: MediaRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(AccessDenied, match=r"'a\.wav'.*cannot be read: Permission denied"):
        roots.open("a.wav")


def test_a_missing_file_is_named_with_the_folders(roots: MediaRoots) -> None:
    with pytest.raises(DataNotFound, match=r"'d\.wav', which a record names, is not below .*one, .*two"):
        roots.open("d.wav")


def test_without_a_folder_nothing_is_read() -> None:
    with pytest.raises(AccessDenied, match="are read only with --media-root FOLDER"):
        media_roots([]).open(str(Path(__file__)))


def test_a_root_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match="is no folder"):
        media_roots([tmp_path / "absent"])
