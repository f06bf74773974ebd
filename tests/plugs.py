"""What works without subjects, and what asking for them says: a program that tests/test_plugs.py runs.

    python -m tests.plugs FOLDER

FOLDER has an input of each format in ``inputs``, and ``asked.json``, which says how each is opened. Printed
is a JSON object: for each check an empty text, or what went wrong.

All checks run in one process, where the modules of the subjects that are to be hidden are taken out of
``sys.modules`` and are not found again. First the core works without any, then each subject is asked for
while it is hidden, then each format is opened with nothing but its subject and those that this one names.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from tests.rooms import IN_FORMATS, SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    Work = Callable[[Any, str], object]
    """A check: it is given the package and the folder."""

Report = TypeVar("Report", pytest.CollectReport, pytest.TestReport)

HIDDEN = ("audio", "tables", "tar", "shar", "kaldi", "tokens", "packing", "remote", "viewer", "integrations")
"""The subjects that are hidden. Lines are not: the core's own tests open JSON lines."""


class Hiding:
    """A finder of modules that stands before all others and finds none of some subjects."""

    def __init__(self) -> None:
        self._parts: tuple[str, ...] = ()

    def hide(self, subjects: Iterable[str]) -> None:
        """Let these subjects be hidden, and no others."""
        self._parts = tuple(part for subject in subjects for part in parts_of(subject))
        for name in [name for name in sys.modules if self._is_hidden(name)]:
            del sys.modules[name]

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del path, target
        if self._is_hidden(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    def _is_hidden(self, name: str) -> bool:
        return any(name == part or name.startswith(f"{part}.") for part in self._parts)


def parts_of(subject: str) -> tuple[str, ...]:
    """Return the packages that are a subject: of Kaldi there are two."""
    below = f"seekable.formats.{subject}"
    return (below, f"seekable.{subject}") if subject in IN_FORMATS else (f"seekable.{subject}",)


# -- the core's own work --


def _lines(sk: Any, folder: str) -> Any:
    """Return a dataset of 11 lines."""
    return sk.open([f"{folder}/inputs/jsonl/a0.jsonl", f"{folder}/inputs/jsonl/a1.jsonl"], key="id")


def _order(sk: Any, folder: str) -> None:
    ds = _lines(sk, folder).shuffle(seed=1).map(_id)
    assert sorted(ds) == list(range(11))
    assert _lines(sk, folder).key(4) == _lines(sk, folder)[4]
    assert ds.locate(0).path.startswith(folder)
    assert "shuffle" in ds.explain()


def _kept(sk: Any, folder: str) -> None:
    kept = _lines(sk, folder).filter(_is_even)
    assert [record["id"] for record in kept] == [0, 2, 4, 6, 8, 10]


def _stream(sk: Any, folder: str) -> None:
    stream = _lines(sk, folder).stream(lanes=2).filter(_is_even).shuffle(buffer=3, seed=1)
    whole = [batch["id"].tolist() for batch in itertools.islice(sk.Loader(stream, batch_size=2), 3)]
    loader = sk.Loader(stream, batch_size=2)
    assert next(iter(loader))["id"].tolist() == whole[0]
    resumed = sk.Loader(stream, batch_size=2)
    resumed.load_state_dict(loader.state_dict())
    assert [batch["id"].tolist() for batch in itertools.islice(resumed, 2)] == whole[1:]


def _loader(sk: Any, folder: str) -> None:
    ds = _lines(sk, folder).shuffle(seed=1)
    whole = [batch["id"].tolist() for batch in sk.Loader(ds, batch_size=4)]
    loader = sk.Loader(ds, batch_size=4)
    assert next(iter(loader))["id"].tolist() == whole[0]
    sk.save_state(f"{folder}/states", loader)
    resumed = sk.Loader(ds, batch_size=4)
    assert sk.load_state(f"{folder}/states", resumed)
    assert [batch["id"].tolist() for batch in resumed] == whole[1:]
    other = sk.Loader(ds.map(_same), batch_size=4)
    other.load_state_dict(loader.state_dict(), resume="rows")
    assert [batch["id"].tolist() for batch in other] == whole[1:]


def _written(sk: Any, folder: str) -> None:
    _lines(sk, folder).write_jsonl(f"{folder}/lines", rows_per_file=5, jobs=1)
    names = [name for name in sorted(os.listdir(f"{folder}/lines")) if name.endswith(".jsonl")]
    assert len(sk.open([f"{folder}/lines/{name}" for name in names])) == 11


def _folder(sk: Any, folder: str) -> None:
    assert len(sk.open(f"{folder}/inputs/jsonl")) == 11


def _saved(sk: Any, folder: str) -> None:
    ds = _lines(sk, folder).shuffle(seed=1)
    ds.save(f"{folder}/pipeline.json")
    assert list(sk.load_pipeline(f"{folder}/pipeline.json")) == list(ds)


def _id(record: Any) -> int:
    return int(record["id"])


def _is_even(record: Any) -> bool:
    return bool(record["id"] % 2 == 0)


def _same(record: Any) -> Any:
    return record


OF_THE_CORE: dict[str, Work] = {
    "order": _order,
    "filter": _kept,
    "stream": _stream,
    "loader": _loader,
    "write": _written,
    "folder of lines": _folder,
    "pipeline file": _saved,
}
"""By name, what the core does without any subject."""

# -- what is asked of the hidden subject --


def _open(name: str) -> Work:
    return lambda sk, folder: opened(sk, folder, name)[1]


ASKED: dict[str, dict[str, Work]] = {
    "audio": {
        "sk.audio": lambda sk, _: sk.audio(offset=1),
        "decode": lambda sk, folder: sk.open(f"{folder}/inputs/tar", decode={"jpg": "audio"})[0],
    },
    "tables": {
        "parquet": _open("parquet"),
        "arrow": _open("arrow"),
        "write": lambda sk, folder: _lines(sk, folder).write_parquet(f"{folder}/parquet"),
        "value": lambda sk, _: sk.formats.Tables(),
    },
    "tar": {
        "tar": _open("tar"),
        "siblings": _open("siblings"),
        "shar": _open("shar"),
        "write": lambda sk, folder: _lines(sk, folder).write_tar(f"{folder}/tar"),
        "value": lambda sk, _: sk.formats.Tar(),
    },
    "shar": {
        "shar": _open("shar"),
        "idxpack": _open("idxpack"),
        "write": lambda sk, folder: _lines(sk, folder).write_shar(f"{folder}/shar", {}),
    },
    "kaldi": {
        "ark": _open("ark"),
        "scp": _open("scp"),
        "sk.kaldi": lambda sk, _: sk.kaldi,
    },
    "tokens": {
        "tokens": _open("tokens"),
        "write": lambda sk, folder: _lines(sk, folder).write_tokens(
            f"{folder}/tokens", store=sk.formats.TokenStore(dtype="uint16")
        ),
        "tokenize": lambda sk, _: sk.tokenize,
    },
    "packing": {
        "pack": lambda sk, folder: _lines(sk, folder).pack(4, seed=1),
        "windows": lambda sk, folder: _lines(sk, folder).windows(4),
        "lengths": lambda sk, folder: sk.formats.token_lengths(_lines(sk, folder)),
        "pipeline file": lambda sk, folder: sk.load_pipeline(f"{folder}/packed.json"),
    },
    "remote": {
        "store": lambda sk, _: sk.open("s3://bucket/a.jsonl"),
        "hub": lambda sk, _: sk.open("hf:me/web:train"),
        "write": lambda sk, folder: _lines(sk, folder).write_jsonl("s3://bucket/lines"),
    },
    "viewer": {"view": lambda sk, folder: sk.view(_lines(sk, folder))},
    "integrations": {
        "executor": lambda _, __: (
            importlib.import_module("seekable.cli.data_argument")
            .executor_of("slurm:2", jobs=None)
            .__enter__()
        )
    },
}
"""By subject and name, what cannot be done without it."""


FORMATS = {
    "tables": ("parquet", "arrow"),
    "tar": ("tar", "siblings"),
    "shar": ("shar", "idxpack"),
    "kaldi": ("ark", "scp"),
    "tokens": ("tokens",),
}
"""By subject, its formats that are opened."""


def opened(sk: Any, folder: str, name: str) -> Any:
    """Return the dataset of a format."""
    with open(f"{folder}/asked.json", encoding="utf-8") as file:
        return sk.open(json.load(file)[name])


# -- the core's own tests without subjects: this module as a plugin of pytest, with SEEKABLE_ALONE --

WITH_SUBJECTS = (
    "tests/index/test_compressed.py",
    "tests/index/test_readonly.py",
    "tests/index/test_strangers.py",
    "tests/loader/streams/test_every_stage.py",
    "tests/loader/test_collate.py",
    "tests/loader/test_exclude.py",
    "tests/loader/test_journal_closed_world.py",
    "tests/loader/test_varlen",
    "tests/nodes/",
    "tests/order/packing/",
    "tests/storage/test_compression.py",
    "tests/stream/test_closed_world.py",
    "tests/stream/test_hostile.py",
    "tests/stream/test_lane.py",
    "tests/stream/test_lineage.py",
    "tests/stream/test_write",
)
"""The beginnings of the names of test files of the core that use subjects too: there cases are skipped."""

_LACKING = re.compile(
    r"MissingDependency: .*needs seekable\.|ModuleNotFoundError: No module named 'seekable\."
)


def pytest_configure() -> None:
    """Hide all subjects from the tests of this process."""
    hiding = Hiding()
    sys.meta_path.insert(0, hiding)
    hiding.hide({*HIDDEN})


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a file that imports a subject."""
    return _skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a case that needs a subject."""
    return _skipped((yield))


def _skipped(report: Report) -> Report:
    if report.failed and report.nodeid.startswith(WITH_SUBJECTS) and _LACKING.search(report.longreprtext):
        report.outcome, report.longrepr = "skipped", (report.nodeid, 0, "Skipped: it needs a subject")
    return report


# -- all checks --


def checks(folder: str) -> dict[str, str]:
    """Return what went wrong in each check; empty texts where nothing did."""
    hiding, found, every = Hiding(), {}, {*HIDDEN}
    sys.meta_path.insert(0, hiding)
    hiding.hide(every)
    sk = importlib.import_module("seekable")
    for name, work in OF_THE_CORE.items():
        found[name] = _wrong(work, sk, folder)
    for subject, asking in ASKED.items():
        hiding.hide({subject})
        for name, work in asking.items():
            found[f"{subject}: {name}"] = _unnamed(work, sk, folder, parts_of(subject))
    for subject, names in FORMATS.items():
        hiding.hide(every - {subject, *SUBJECTS[subject]})
        for name in names:
            found[f"open {name}"] = _wrong(_open(name), sk, folder)
    return found


def _wrong(work: Work, sk: Any, folder: str) -> str:
    try:
        work(sk, folder)
    except Exception:  # noqa: BLE001 - the test shows it
        return traceback.format_exc()
    return ""


def _unnamed(work: Work, sk: Any, folder: str, parts: tuple[str, ...]) -> str:
    """Return an empty text if asking raises the error that names the subject; else what it does."""
    try:
        work(sk, folder)
    except sk.MissingDependency as error:
        return "" if any(part in str(error) for part in parts) else traceback.format_exc()
    except Exception:  # noqa: BLE001 - the test shows it
        return traceback.format_exc()
    return "it works"


if __name__ == "__main__":
    sys.modules["pandas"] = None  # type: ignore[assignment]  # pyarrow would load it, for a second
    json.dump(checks(sys.argv[1]), sys.stdout)
