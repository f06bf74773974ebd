"""Formats of other packages: found by entry points where no format of ours fits, or given as a value."""

from __future__ import annotations

import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable.cli.machine_checks import format_findings
from seekable.dataset.verify_data import verify
from seekable.formats import plugins

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CODE = """
from dataclasses import dataclass
from typing import ClassVar

from seekable.formats import Card, Claim, Lines
from seekable.formats.look import find_files
from seekable.formats.lines.text import TextScanner


@dataclass(frozen=True, slots=True, kw_only=True)
class Log(Lines):
    card: ClassVar[Card] = Card(name="log", home="log_format:Log", suffixes=(".log",))

    @property
    def finder(self):
        return TextScanner("log")

    @classmethod
    def claim(cls, look):
        if look.is_folder and "LOGS" in look.names:
            return Claim(format=cls(), found=find_files(look.path, suffixes=(".part",)))
        return None
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Install a package with one format, and return its module."""
    site = tmp_path / "site"
    about = site / "log_format-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "log_format.py").write_text(CODE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: log-format\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[seekable.formats]\nlog = log_format:Log\n")
    monkeypatch.syspath_prepend(site)
    forget()
    yield importlib.import_module("log_format")
    del sys.modules["log_format"]
    forget()


def forget() -> None:
    """Let entry points be read again."""
    plugins._points.cache_clear()
    plugins._loaded.cache_clear()
    plugins._GIVEN.clear()


def data(folder: Path) -> Path:
    folder.mkdir()
    (folder / "a.log").write_text("one\ntwo\n")
    (folder / "b.log").write_text("three\n")
    return folder


def test_files_of_its_suffix_are_opened_however_they_are_named(tmp_path: Path, package: Any) -> None:
    folder = data(tmp_path / "d")
    assert list(sk.open(folder / "a.log")) == ["one", "two"]
    for asked in (folder, f"{folder}/*.log", [folder / "a.log", folder / "b.log"]):
        assert list(sk.open(asked)) == ["one", "two", "three"]
    assert list(sk.open(folder, format="log")) == ["one", "two", "three"]
    assert list(sk.open(folder, format=package.Log())) == ["one", "two", "three"]
    with pytest.raises(sk.DataNotFound, match=r"ends in \.log"):
        sk.open(tmp_path / "site" / "log_format-1.0.dist-info", format=package.Log())


def test_a_value_needs_no_entry_point(tmp_path: Path, package: Any) -> None:
    (tmp_path / "site" / "log_format-1.0.dist-info" / "entry_points.txt").write_text("")
    forget()
    folder = data(tmp_path / "d")
    with pytest.raises(sk.DataNotFound):
        sk.open(folder)
    ds = sk.open(folder, format=package.Log())
    assert repr(ds).startswith("<Dataset, 3 records: open(")
    ds.save(tmp_path / "p.json")
    assert list(sk.load_pipeline(tmp_path / "p.json")) == ["one", "two", "three"]
    assert verify(folder, format=package.Log()).problems == ()


@pytest.mark.usefixtures("package")
def test_a_format_claims_a_folder(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "LOGS").write_text("")
    (tmp_path / "d" / "x.part").write_text("one\n")
    assert list(sk.open(tmp_path / "d")) == ["one"]


def test_it_is_verified_saved_loaded_and_resumed(
    tmp_path: Path, package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = sk.open(data(tmp_path / "d"))
    for given in (None, "log", package.Log()):
        assert verify(tmp_path / "d", format=given, deep=True, decode=True).records == 3
    ds.shuffle(seed=1).save(tmp_path / "p.json")
    again = sk.load_pipeline(tmp_path / "p.json")
    loader = sk.Loader(ds.shuffle(seed=1), batch_size=1)
    batches = iter(loader)
    first = next(batches)
    resumed = sk.Loader(again, batch_size=1)
    resumed.load_state_dict(loader.state_dict())
    assert sorted([*first, *(each for batch in resumed for each in batch)]) == ["one", "three", "two"]
    with monkeypatch.context() as without:
        without.setattr(plugins, "_points", dict)
        without.setattr(plugins, "_GIVEN", {})
        with pytest.raises(
            sk.errors.CorruptState, match=r"got 'log'\); one of another package is read where"
        ):
            sk.load_pipeline(tmp_path / "p.json")


@pytest.mark.usefixtures("package")
def test_a_card_that_is_not_what_the_entry_point_says_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    points = tmp_path / "site" / "log_format-1.0.dist-info" / "entry_points.txt"
    path = data(tmp_path / "d") / "a.log"
    for text, told in (
        ("other = log_format:Log", "by its entry point, and by its card 'log'"),
        ("log = log_format:Claim", r"which is no seekable\.formats\.Format"),
        ("log = log_format:Gone", "cannot be imported .* install that package again"),
    ):
        points.write_text(f"[seekable.formats]\n{text}\n")
        forget()
        with pytest.raises(sk.errors.UnsupportedFormat, match="has the suffix of no known format"):
            sk.open(path)
        assert re.search(told, caplog.text)
        caplog.clear()


def test_ours_are_opened_without_a_look_at_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> Any:
        raise AssertionError

    monkeypatch.setattr(plugins, "_points", fails)
    (tmp_path / "a.jsonl").write_text("1\n")
    assert list(sk.open(tmp_path)) == [1]
    with pytest.raises(sk.DataNotFound):
        sk.open(tmp_path / "b.jsonl")
    with pytest.raises(sk.DataNotFound):
        sk.open(tmp_path / "mistyped.jsnl")


def test_the_doctor_names_the_formats_of_other_packages(tmp_path: Path, package: Any) -> None:
    assert [found.value for found in format_findings()] == ["log_format:Log, .log"]
    about, code = tmp_path / "site" / "log_format-1.0.dist-info", tmp_path / "site" / "log_format.py"
    code.write_text(
        f'{CODE}\n    card = Card(name="log", home="log_format:Log", suffixes=(".log", ".tar"))\n'
    )
    (about / "entry_points.txt").write_text(
        "[seekable.formats]\nlog = log_format:Log\ngone = log_format:Gone\n"
    )
    importlib.reload(package)
    forget()
    gone, log = format_findings()
    assert (gone.level, gone.name) == ("bad", "gone")
    assert "cannot be imported" in gone.advice
    assert (log.level, log.value) == ("warn", "log_format:Log, .log .tar")
    assert log.advice == "seekable itself opens .tar: say format='log'"
