"""Types of media against bytes that encoders write, and bytes that only look like media."""

from __future__ import annotations

import io
import wave

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekable.viewer.media import media_headers, media_type


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
