"""Audio in tar files: parts, errors that name the member, and a package that is missing."""

from __future__ import annotations

import importlib.util
import io
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from tests.sound.waves import encoded, signal, wave

import seekable as sk
from seekable._optional import optional
from seekable.formats.audio import soundfile_formats

if TYPE_CHECKING:
    from pathlib import Path

WAV = wave((signal(20000) * 32767).astype("<i2").tobytes())


def archive(folder: Path, **members: bytes) -> str:
    """The path of a tar file with these members; ``__`` in a name stands for the dot."""
    path = folder / "a.tar"
    with tarfile.open(path, "w") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name.replace("__", "."))
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return str(path)


def as_hole(_: sk.CorruptRecord) -> Any:
    return sk.HOLE


def test_a_field_is_decoded_whole_or_in_part(tmp_path: Path) -> None:
    path = archive(tmp_path, a__wav=WAV, a__flac=encoded("FLAC"), b__wav=WAV, b__flac=encoded("FLAC"))
    ds = sk.open(path, decode={"wav": sk.audio(offset=0.5, duration=0.25), "flac": "audio"})
    whole = sk.open(path, decode="audio")
    assert [ds[1]["wav"][0].size, ds[1]["flac"][0].size] == [4000, 20000]
    assert (ds[1]["wav"][0] == whole[1]["wav"][0][8000:12000]).all()
    assert sk.open(path, decode=sk.audio()).fingerprint == whole.fingerprint != ds.fingerprint


def test_a_file_that_is_cut_off_is_a_corrupt_record(tmp_path: Path) -> None:
    path = archive(tmp_path, a__wav=WAV, b__wav=WAV[:-100], c__wav=WAV)
    with pytest.raises(sk.CorruptRecord, match=r"record 1 with the key 'b'.*'wav'.* the WAV file is cut off"):
        list(sk.open(path, decode="audio"))
    kept = list(sk.open(path, decode="audio", errors=as_hole))
    assert [record is sk.HOLE for record in kept] == [False, True, False]


@pytest.mark.parametrize(
    "decode",
    [
        "audio",
        sk.audio(),
        sk.audio(offset=0.5, duration=0.25, short="keep"),
        {"wav": sk.audio(offset=1), "flac": sk.audio(duration=0.5)},
    ],
)
def test_a_pipeline_file_holds_the_decoders(tmp_path: Path, decode: Any) -> None:
    ds = sk.open(archive(tmp_path, a__wav=WAV, a__flac=encoded("FLAC")), decode=decode)
    ds.save(tmp_path / "p.json")
    again = sk.load_pipeline(tmp_path / "p.json")
    assert again.fingerprint == ds.fingerprint
    assert again[0].keys() == ds[0].keys()
    assert all((again[0][field][0] == ds[0][field][0]).all() for field in ("wav", "flac"))


@pytest.mark.parametrize("changed", ['"offset": -1', '"offset": null', '"offset": "x"'])
def test_a_damaged_decoder_in_a_pipeline_file_is_an_error(tmp_path: Path, changed: str) -> None:
    sk.open(archive(tmp_path, a__wav=WAV), decode=sk.audio(offset=1)).save(tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text(encoding="utf-8")
    assert '"offset": 1.0' in text
    (tmp_path / "p.json").write_text(text.replace('"offset": 1.0', changed), encoding="utf-8")
    with pytest.raises(sk.errors.CorruptState, match="offset must be"):
        sk.load_pipeline(tmp_path / "p.json")


def test_a_missing_package_is_named_at_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path, a__flac=encoded("FLAC"), a__wav=WAV)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(sk.MissingDependency, match=r"'flac'.* soundfile.* install 'seekable\[audio\]'"):
        sk.open(path, decode="audio")
    assert sk.open(path, decode="audio", columns=["wav"])[0]["wav"][1] == 16000


def test_a_missing_package_is_no_corrupt_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A WAV file of other than plain samples needs soundfile, which is known when it is read."""
    path = archive(tmp_path, a__wav=encoded("WAV", "ULAW"))
    monkeypatch.setattr(soundfile_formats, "soundfile", optional("soundfile", extra="audio"))
    monkeypatch.setitem(sys.modules, "soundfile", None)
    ds = sk.open(path, decode="audio", errors=as_hole)
    with pytest.raises(sk.MissingDependency, match="soundfile"):
        ds[0]
