"""Media of records: types by first bytes, files that records name, what a place stands for."""

from __future__ import annotations

import io
import os
import tarfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable import kaldi
from seekable.errors import AccessDenied, BadValue, DataNotFound, WrongType
from seekable.formats.audio.wave_file import wave_file
from seekable.formats.kaldi.holders.wave import Wave
from seekable.viewer.media import MediaRoots, decoded_audio, media_at, media_headers, media_roots, media_type
from seekable.viewer.pages.media_pages import waveform


def wav() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(16_000)
        writer.writeframes(bytes(320))
    return file.getvalue()


def bmp(header: int) -> bytes:
    return b"BM" + (1000).to_bytes(4, "little") + bytes(4) + b"\x36\0\0\0" + header.to_bytes(4, "little")


SHOWN = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "image/gif": b"GIF89a\x01\0\x01\0",
    "image/webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "image/avif": b"\0\0\0\x20ftypavif\0\0\0\0mif1",
    "image/bmp": bmp(40),
    "audio/wav": wav(),
    "audio/flac": b"fLaC\0\0\0\x22",
    "audio/ogg": b"OggS\0\x02" + bytes(20),
    "audio/mpeg": b"\xff\xfb\x90\x64" + bytes(20),
    "audio/mp4": b"\0\0\0\x20ftypM4A \0\0\0\0",
    "video/mp4": b"\0\0\0\x20ftypisom\0\0\2\0",
    "video/webm": b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm",
}

NOT_SHOWN = {
    "nothing": b"",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'>",
    "svg after xml": b"<?xml version='1.0'?><svg/>",
    "html": b"<!doctype html><script>alert(1)</script>",
    "pdf": b"%PDF-1.7",
    "zip": b"PK\x03\x04",
    "text of a bitmap": b"BM is a short name of a company that makes soap",
    "bitmap of another header": bmp(41),
    "avi": b"RIFF\x24\0\0\0AVI LIST",
    "heic": b"\0\0\0\x20ftypheic",
    "matroska": b"\x1a\x45\xdf\xa3\x9f\x42\x82\x88matroska",
    "utf-16": b"\xff\xfe<\0s\0c\0r\0",
    "mp3 of no bit rate": b"\xff\xfb\x00\x64",
    "mp3 of a bad bit rate": b"\xff\xfb\xf0\x64",
    "mp3 of a bad sample rate": b"\xff\xfb\x9c\x64",
    "mp3 of no version": b"\xff\xeb\x90\x64",
    "layer II": b"\xff\xfd\x90\x64",
    "half of a frame's header": b"\xff\xfb\x90",
}


@pytest.mark.parametrize("name", SHOWN)
def test_media_is_known_by_its_first_bytes(name: str) -> None:
    found = media_type(SHOWN[name])
    assert (found.name, found.kind) == (name, name.split("/", maxsplit=1)[0])
    assert media_headers(found, name="x")["Content-Disposition"] == f'inline; filename="x{found.suffix}"'


@pytest.mark.parametrize("what", NOT_SHOWN)
def test_all_else_is_saved(what: str) -> None:
    found = media_type(NOT_SHOWN[what])
    headers = media_headers(found, name="x")
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"] == 'attachment; filename="x.bin"'


@pytest.mark.parametrize("name", SHOWN)
def test_a_cut_head_is_never_an_error(name: str) -> None:
    whole = media_type(SHOWN[name])
    for stop in range(len(SHOWN[name])):
        assert media_type(SHOWN[name][:stop]).name in {whole.name, "application/octet-stream"}


@given(st.binary(max_size=80))
def test_markup_before_media_is_never_shown(tail: bytes) -> None:
    assert media_type(b"<" + tail).kind == "other" or tail[3:7] == b"ftyp"


@given(st.text(max_size=60))
def test_no_name_leaves_its_quotes(name: str) -> None:
    headers = media_headers(media_type(b""), name=name)
    inside = headers["Content-Disposition"].removeprefix('attachment; filename="').removesuffix('.bin"')
    assert len(inside) == len(name)
    assert all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in inside)


def test_every_answer_is_kept_apart() -> None:
    for head in [*SHOWN.values(), *NOT_SHOWN.values()]:
        headers = media_headers(media_type(head), name="x")
        assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


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
        with pytest.raises(AccessDenied, match="is not a regular file"):
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
    with pytest.raises(DataNotFound, match="is not a folder"):
        media_roots([tmp_path / "absent"])


NO_FILES = media_roots([])
TONE = (np.sin(np.arange(800) / 5) * 0.5).astype(np.float32)


def sent(record: Any, at: str) -> bytes:
    with media_at(record, at, NO_FILES) as payload:
        return bytes(payload.range(0, payload.size))


def loudest(data: bytes) -> float:
    return max(waveform(data).high)


def test_bytes_are_sent_as_they_are() -> None:
    assert sent({"a": [b"xyz"]}, "a[0]") == b"xyz"
    assert sent(b"record", "[record]") == b"record"


@pytest.mark.parametrize("channels", [1, 2])
def test_decoded_audio_is_sent_as_a_wave_file(channels: int) -> None:
    samples = TONE if channels == 1 else np.stack([TONE, TONE / 2], axis=1)
    data = sent({"wav": (samples, 8000)}, "wav")
    assert data == wave_file(samples, 8000)
    assert (waveform(data).channels, waveform(data).frames) == (channels, 800)


@pytest.mark.parametrize(("channels", "samples"), [(1, 800), (2, 400), (1, 1), (2, 1), (1, 0)])
def test_a_wave_of_kaldi_is_scaled(channels: int, samples: int) -> None:
    data = (TONE[: channels * samples].reshape(channels, samples) * (1 << 15)).astype(np.float32)
    found = decoded_audio(Wave(16_000, data))
    assert found is not None
    made = waveform(wave_file(*found))
    assert (made.frames, made.rate) == (samples, 16_000)
    if samples:
        assert made.channels == channels
        assert np.allclose(found[0].reshape(-1, channels), (data / (1 << 15)).T)


def test_audio_of_each_format_of_records_is_heard(tmp_path: Path) -> None:
    file = wave_file((TONE * 32767).astype(np.int16), 8000)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo("utt.wav")
        member.size = len(file)
        tar.addfile(member, io.BytesIO(file))
    with sk.SharWriter(tmp_path / "shar", {"recording": "wav"}, shard_size=2) as writer:
        writer.write({"id": "utt", "recording": {"data": (TONE, 8000)}})
    ark = f"ark:{tmp_path / 'a.ark'}"
    with kaldi.Writer(ark, "wave") as waves:
        waves.write("utt", kaldi.Wave(8000, (TONE * (1 << 15))[None]))
    records = {
        "tar": (sk.open(str(tmp_path / "a.tar"))[0], "wav"),
        "tar, decoded": (sk.open(str(tmp_path / "a.tar"), decode={"wav": "audio"})[0], "wav"),
        "shar": (sk.open(f"shar:{tmp_path / 'shar'}")[0], "recording.data"),
        "kaldi": (sk.open(ark, format=sk.formats.Kaldi(holder="wave"))[0], "[1]"),
    }
    for name, (record, at) in records.items():
        assert loudest(sent(record, at)) == pytest.approx(0.5, abs=0.01), name


def test_a_named_file_is_read_below_a_folder_only(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.bin").write_bytes(b"0123456789")
    (tmp_path / "secret").write_bytes(b"secret")
    roots = media_roots([tmp_path / "in"])
    record = {"file": "a.bin", "out": "../secret", "absolute": str(tmp_path / "secret")}
    with media_at(record, "file", roots) as payload:
        assert (payload.size, bytes(payload.range(2, 5))) == (10, b"234")
    for at in ("out", "absolute"):
        with pytest.raises(AccessDenied), media_at(record, at, roots):
            pass
    with pytest.raises(AccessDenied, match="--media-root"):
        sent(record, "file")


@pytest.mark.parametrize(
    "value",
    [1, None, [b"x"], (TONE, 0), (TONE, True), (TONE.astype(np.float64), 8000), (TONE[None, None], 8)],
)
def test_other_values_are_no_media(value: Any) -> None:
    with pytest.raises(WrongType, match="at 'a' is of type"):
        sent({"a": value}, "a")
