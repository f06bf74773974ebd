"""What ``sk.open`` makes of a source: which format, which files in which order, or which refusal."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.dataset.recognition.opened import OPENED
from tests.dataset.recognition.refused_files import REFUSED_FILES
from tests.dataset.recognition.refused_names import REFUSED_NAMES
from tests.dataset.recognition.refused_options import REFUSED_OPTIONS
from tests.dataset.recognition.refused_options_of_others import REFUSED_OPTIONS_OF_OTHERS

import seekable as sk

if TYPE_CHECKING:
    from tests.dataset.recognition.files import Case

GROUPS = OPENED | REFUSED_FILES | REFUSED_NAMES | REFUSED_OPTIONS | REFUSED_OPTIONS_OF_OTHERS

SUFFIXES = (
    ".jsonl, .jsonl.gz, .jsonl.zst, .ndjson, .ndjson.gz, .ndjson.zst, .json, .json.gz, "
    ".json.zst, .txt, .txt.gz, .txt.zst, .csv, .csv.gz, .csv.zst, .tsv, .tsv.gz, .tsv.zst, "
    ".parquet, .pq, .arrow, .feather, .ipc, .ark, .ark.gz, .ark.zst, .scp, .scp.gz, .scp.zst, "
    ".tar, .tar.gz, .tar.zst, .tgz"
)
"""The ends of the names of data files, in the order in which messages name them."""

FORMATS = (
    "'jsonl', 'text', 'csv', 'tsv', 'csv-semicolon', 'parquet', 'arrow', 'ark', 'scp', "
    "'kaldi-directory', 'tar', 'tokens'"
)
"""The names of formats, in the order in which messages name them."""

MORE = "..."
"""Ends an answer whose rest depends on the versions of packages."""


def placed(value: Any, folder: Path) -> Any:
    """Return a source in which the folder has the place of ``DIR``."""
    if isinstance(value, str):
        return value.replace("DIR", str(folder))
    if isinstance(value, Path):
        return Path(placed(str(value), folder))
    if isinstance(value, list | tuple):
        return type(value)(placed(item, folder) for item in value)
    if isinstance(value, dict):
        return {name: placed(item, folder) for name, item in value.items()}
    return value


def write(case: Case, folder: Path) -> None:
    if callable(case.files):
        case.files(folder)
        return
    for name, content in case.files.items():
        path = folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(content)


def told(dataset: sk.Dataset, folder: Path) -> str:
    """Return the nodes with their files and records, and the first record with its file."""
    node, *lines = dataset.explain().splitlines()
    nodes = re.sub(r"\b(format|decode)=", "", " | ".join([node, *map(str.strip, lines)]))
    nodes = re.sub(r": ([\d,]+) records(, [\d,]+ bytes)?", r": \1", nodes)
    if not len(dataset):
        return f"{nodes} -> nothing"
    found = dataset.locate(0)
    places = [found] if isinstance(found, sk.Location) else found
    files = ", ".join(str(Path(place.path).relative_to(folder)) for place in places)
    return f"{nodes} -> {dataset[0]!r} of {files}"


def answer_to(case: Case, folder: Path) -> str:
    """Return what ``sk.open`` makes of a case, warnings included."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = told(sk.open(placed(case.source, folder), **case.options), folder)
        except Exception as error:  # noqa: BLE001 - bare errors are answers too
            answer = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    answer = "\n".join([answer, *(f"{each.category.__name__}: {each.message}" for each in caught)])
    for text, name in ((str(folder), "DIR"), (SUFFIXES, "SUFFIXES"), (FORMATS, "FORMATS")):
        answer = answer.replace(text, name)
    return answer


@pytest.mark.parametrize("group", GROUPS)
def test_each_source_has_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    # A test for each case would double the time that the cases take.
    others = []
    for number, case in enumerate(GROUPS[group]):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        write(case, folder)
        answer = answer_to(case, folder)
        if case.answer.endswith(MORE):
            answer = answer[: len(case.answer) - len(MORE)] + MORE
        if answer != case.answer:
            others.append(f"{case.name}\n  has the answer  {answer}\n  in the place of {case.answer}")
    assert not others, "\n".join(others)


def test_no_two_cases_have_one_name() -> None:
    names = [case.name for cases in GROUPS.values() for case in cases]
    assert len(set(names)) == len(names)
