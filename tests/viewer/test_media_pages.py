"""Bytes of records over HTTP: ranges against a model, safe types, files below the folder, waveforms."""

from __future__ import annotations

import base64
import io
import tarfile
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.cli.command import documents
from tests.viewer.viewed import picture, tone

import seekable as sk
from seekable import kaldi
from seekable.errors import InvalidArgument, OutOfRange
from seekable.viewer.app import make_app
from seekable.viewer.opened import opened_of
from seekable.viewer.pages import media_pages as room
from seekable.viewer.pages.media_pages import LARGEST_ANSWER, range_of

if TYPE_CHECKING:
    from pathlib import Path

AUDIO = tone(3)
SANDBOX = "sandbox; default-src 'none'"


@pytest.mark.parametrize("address", ["media/d/sounds/0/audio.bytes", "media/d/sounds/0?at=audio.bytes"])
def test_bytes_are_those_of_the_record(pages: TestClient, address: str) -> None:
    answer = pages.get(f"/{address}")
    assert (answer.status_code, answer.content) == (200, AUDIO)
    assert answer.headers["content-type"] == "audio/wav"
    assert answer.headers["content-length"] == str(len(AUDIO))
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-security-policy"] == SANDBOX
    assert pages.head(f"/{address}").headers["content-length"] == str(len(AUDIO))


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-99", 206, slice(0, 100)),
        ("bytes=24000-", 206, slice(24_000, None)),
        ("bytes=-10", 206, slice(-10, None)),
        ("bytes=0-1,5-6", 200, slice(None)),
        ("lines=0-1", 200, slice(None)),
    ],
)
def test_a_request_has_one_range(pages: TestClient, asked: str, status: int, part: slice) -> None:
    answer = pages.get("/media/d/sounds/0/audio.bytes", headers={"Range": asked})
    assert (answer.status_code, answer.content) == (status, AUDIO[part])
    start, stop, _ = part.indices(len(AUDIO))
    expected = f"bytes {start}-{stop - 1}/{len(AUDIO)}" if status == 206 else None
    assert answer.headers.get("content-range") == expected


def test_a_range_behind_the_end_is_refused(pages: TestClient) -> None:
    answer = pages.get("/media/d/sounds/0/audio.bytes", headers={"Range": "bytes=999999-"})
    assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{len(AUDIO)}")


def test_what_could_be_a_page_is_saved(pages: TestClient) -> None:
    answer = pages.get("/media/d/sounds/1/page")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="sounds-1-page.bin"'
    assert answer.headers["content-security-policy"] == SANDBOX
    shown = pages.get("/media/d/sounds/2?at=image")
    assert (shown.headers["content-type"], shown.content) == ("image/png", picture(160))


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("media/d/sounds/0/nothing", 404, "there is no key"),
        ("media/d/sounds/9/image", 404, "there is no row 9"),
        ("media/d/nobody/0/image", 404, "there is no dataset"),
        ("media/d/sounds/0/audio", 400, "is of type dict"),
        ("media/d/sounds/0?at=audio[", 400, "cannot be read"),
        ("media/d/sounds/1/audio_filepath", 403, "outside of"),
        ("media/d/sounds/2/audio_filepath", 403, "outside of"),
        ("media/d/corpus/0/text", 404, "is not below"),
        ("d/sounds/wave/0?at=image", 422, "cannot be decoded as audio"),
    ],
)
def test_what_is_not_sent_is_explained(pages: TestClient, address: str, status: int, says: str) -> None:
    answer = pages.get(f"/{address}")
    assert (answer.status_code, says in answer.text) == (status, True), answer.text


def test_a_named_file_is_shown_if_it_lies_below_the_folder(pages: TestClient) -> None:
    assert pages.get("/media/d/sounds/0/audio_filepath").content == tone(2)
    inside, outside = (pages.get(f"/d/sounds/row/{row}").text for row in (0, 1))
    assert "media/d/sounds/0?at=audio_filepath" in inside
    assert "media/d/sounds/1?at=audio_filepath" not in outside
    # The path of audio whose bytes stand beside it is not looked for.
    assert ("not shown" in inside, outside.count("not shown")) == (False, 1)
    assert "lies outside of" in outside


def test_a_waveform_has_its_numbers(pages: TestClient) -> None:
    found = pages.get("/d/sounds/wave/1?at=audio.bytes&as=json").json()
    assert (found["seconds"], found["rate"], found["channels"], found["made_of"]) == (
        20,
        4000,
        1,
        "exact, computed",
    )
    assert len(found["low"]) == len(found["high"]) == 400
    answer = pages.get("/d/sounds/wave/1.svg?at=audio.bytes&theme=dark")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert ET.fromstring(answer.text).findtext("{*}title") == "Waveform of row 1"


def test_audio_that_cannot_be_decoded_has_a_picture_that_says_so(pages: TestClient) -> None:
    answer = pages.get("/d/sounds/wave/0.svg?at=broken")
    assert answer.status_code == 200
    assert "no waveform: soundfile cannot decode" in answer.text


def test_audio_of_each_format_has_a_player_and_a_waveform(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo("utt.wav")
        member.size = len(AUDIO)
        tar.addfile(member, io.BytesIO(AUDIO))
    samples = (np.sin(np.arange(12_000) / 5) / 2).astype(np.float32)
    with sk.SharWriter(tmp_path / "shar", {"recording": "wav"}, shard_size=2) as shar:
        shar.write({"id": "utt", "recording": {"data": (samples, 4000)}})
    ark = f"ark:{tmp_path / 'a.ark'}"
    with kaldi.Writer(ark, "wave") as waves:
        waves.write("utt", kaldi.Wave(4000, (samples * np.float32(1 << 15))[None]))
    places = {"tar": "wav", "decoded": "wav", "shar": "recording.data", "kaldi": "[1]"}
    opened = opened_of(
        {
            "tar": sk.open(tmp_path / "a.tar"),
            "decoded": sk.open(tmp_path / "a.tar", decode={"wav": "audio"}),
            "shar": sk.open(f"shar:{tmp_path / 'shar'}"),
            "kaldi": sk.open(ark, format=sk.formats.Kaldi(holder="wave")),
        }
    )
    pages = TestClient(make_app(opened), base_url="http://127.0.0.1")
    for name, at in places.items():
        for address in ("row/0", "row/0?as=json", "row/0?view=file", "row/0?view=bytes", "rows", ""):
            answer = pages.get(f"/d/{name}/{address}")
            assert answer.status_code == 200, (name, address, answer.text)
        page = pages.get(f"/d/{name}/row/0").text
        assert (
            f'<audio controls preload="none" src="../../../media/d/{name}/0?at={quote(at, safe="")}"' in page
        )
        found = pages.get(f"/d/{name}/wave/0", params={"at": at, "as": "json"}).json()
        assert (found["seconds"], found["rate"], found["channels"]) == (3, 4000, 1)
        assert pages.get(f"/media/d/{name}/0", params={"at": at}).headers["content-type"] == "audio/wav"


PLACES = st.none() | st.integers(0, 25)


def model(first: int | None, last: int | None, size: int) -> list[int]:
    places = list(range(size))
    if first is None:
        return places[size - min(last or 0, size) :]
    return [place for place in places if place >= first and (last is None or place <= last)]


@given(PLACES, PLACES, st.integers(0, 20))
def test_a_range_has_the_bytes_that_it_names(first: int | None, last: int | None, size: int) -> None:
    written = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    if (first is None and last is None) or (first is not None and last is not None and first > last):
        assert not range_of(written, size).partial
        return
    expected = model(first, last, size)
    if not expected:
        with pytest.raises(OutOfRange, match="has no byte of the value"):
            range_of(written, size)
        return
    found = range_of(written, size)
    assert found.partial
    assert list(range(found.start, found.stop)) == expected
    assert found.content_range == f"bytes {expected[0]}-{expected[-1]}/{size}"


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "bytes", "bytes=", "bytes=-", "bytes=0-1,3-4", "items=0-1", "bytes=a-b", "bytes=1"),
        *("bytes=--1", "bytes=\u0660-\u0661", "bytes=0-1\n", "bytes=0x1-2", "bytes=1-0"),
        "bytes=" + "9" * 5000 + "-",
    ],
    ids=lambda header: str(header)[:20],
)
def test_what_is_no_single_range_is_ignored(header: str | None) -> None:
    found = range_of(header, 10)
    assert (found.start, found.stop, found.partial) == (0, 10, False)


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match="send the header 'Range: bytes=0-67108863'"):
        range_of(None, LARGEST_ANSWER + 1)
    assert range_of(None, LARGEST_ANSWER).stop == LARGEST_ANSWER
    monkeypatch.setattr(room, "LARGEST_ANSWER", 4)
    found = range_of("bytes=5-", 20)
    assert (found.start, found.stop, found.content_range) == (5, 9, "bytes 5-8/20")


def test_places_of_nineteen_digits_are_numbers() -> None:
    found = range_of(f"bytes=3-{10**19 - 1}", 10)
    assert (found.start, found.stop) == (3, 10)
    with pytest.raises(OutOfRange):
        range_of(f"bytes={10**18}-", 10)


def test_the_document_of_a_row_has_bytes_as_the_command_prints_them(pages: TestClient, data: Path) -> None:
    (printed,) = documents("get", "sounds", "1", cwd=data)
    record = pages.get("/d/sounds/row/1?as=json").json()["record"]
    assert record == printed["record"]
    assert base64.b64decode(record["image"]) == sk.open(data / "sounds")[1]["image"]
