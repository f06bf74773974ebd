"""FormatTests pass for formats that keep the contract, ours and those of packages, and find the others."""

from __future__ import annotations

import inspect
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from tests.format_cases import PLAIN, Case, source_of
from tests.testing import plugin_formats
from tests.testing.plugin_formats import Fixed, Logs

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.formats import Card, plugins
from seekable.testing import FormatTests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.usefixtures("forked_programs")

NUMBERS = [5, -3, 0, 1 << 40, 7, 8, 9, -(1 << 62), 10, 11, 12]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the formats of a package entry points, as its installation does: here and in child processes."""
    folder = tmp_path_factory.mktemp("packages")
    package = folder / "own_formats-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: own-formats\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in plugin_formats.WORDS.items()]
    (package / "entry_points.txt").write_text(f"[{plugins.GROUP}]\n" + "\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
        )
        plugins.forget()
        yield
    plugins.forget()


def write_numbers(folder: Path, numbers: Sequence[int] = NUMBERS, order: str = "<", cut: int = 4) -> None:
    for name, some in (("a", numbers[:cut]), ("b", numbers[cut:])):
        (folder / f"{name}.fixed").write_bytes(struct.pack(f"{order}{len(some)}q", *some))


class TestLines(FormatTests):
    def write(self, folder: str) -> str:
        Path(folder, "a.log").write_text("> 0\n> 1\n# a comment\n> 2\n")
        Path(folder, "b.log").write_text("".join(f"> {row}\n" for row in range(3, 11)))
        return folder

    def records(self) -> list[Any]:
        return [f"> {row}" for row in range(11)]


class TestRows(FormatTests):
    def write(self, folder: str) -> str:
        write_numbers(Path(folder))
        return folder

    def records(self) -> list[Any]:
        return [{"number": number, "negative": number < 0} for number in NUMBERS]


def test_a_format_of_a_package_is_opened_by_suffix_by_name_and_as_a_value(tmp_path: Path) -> None:
    write_numbers(tmp_path)
    sources: list[tuple[Any, Any]] = [
        (tmp_path, None),
        (tmp_path / "a.fixed", None),
        (f"{tmp_path}/*.fixed", "fixed"),
        ([tmp_path / "a.fixed"], Fixed()),
    ]
    opened = [sk.open(source, format=given) for source, given in sources]
    assert [len(ds) for ds in opened] == [11, 4, 11, 4]
    assert {ds[1]["number"] for ds in opened} == {-3}
    assert repr(opened[0]) == f"<Dataset, 11 records: open({str(tmp_path)!r})>"


def test_options_of_a_format_are_in_the_fingerprint_and_in_pipeline_files(tmp_path: Path) -> None:
    write_numbers(tmp_path, order=">")
    ds = sk.open(tmp_path, format=Fixed(order="big"))
    assert ds[3]["number"] == 1 << 40
    assert ds.fingerprint != sk.open(tmp_path).fingerprint
    ds.shuffle(seed=1).save(tmp_path / "pipeline.json")
    loaded = sk.load_pipeline(tmp_path / "pipeline.json")
    assert list(loaded) == list(ds.shuffle(seed=1))
    assert loaded.fingerprint == ds.shuffle(seed=1).fingerprint


def test_the_description_of_rows_is_golden(tmp_path: Path) -> None:
    """CHANGING IT IS A BREAKING CHANGE: no state of an older release over rows of a package would load."""
    write_numbers(tmp_path, [*range(5), 100, 101, 102], order=">", cut=5)
    ds = sk.open(tmp_path, format=Fixed(order="big"), columns=["number"])
    assert ds.fingerprint == "xxh3:967f0f2496fa19a55e13e6f4525cf076"
    state = sk.Loader(ds, batch_size=2).state_dict()
    assert state["pipeline"] == (
        '{"files":[[{"head_tail":"xxh3:7581f7513b4b6f7a","name":"a.fixed","offsets":"xxh3:ace144d934729048",'
        '"records":5,"size":40},{"head_tail":"xxh3:e27f82eb1738f853","name":"b.fixed",'
        '"offsets":"xxh3:a9c537f75b27a974","records":3,"size":24}]],"nodes":[{"columns":["number"],"files":0,'
        '"format":"fixed","kind":"rows","options":{"order":"big"}}]}'
    )


def test_columns_of_a_row_format_are_those_that_are_asked_for(tmp_path: Path) -> None:
    write_numbers(tmp_path)
    assert sk.open(tmp_path, columns=["negative"])[[1, 0]] == [{"negative": True}, {"negative": False}]
    assert sk.open(tmp_path).select_columns(["number"])[0] == {"number": 5}


def test_a_row_that_cannot_be_read_is_named_alone_and_in_a_batch(tmp_path: Path) -> None:
    write_numbers(tmp_path, [1, 2, 3, 4, 5, 13, 6])
    ds = sk.open(tmp_path)
    for asked in (5, [0, 6, 5, 4]):
        with pytest.raises(sk.CorruptRecord, match=r"b\.fixed.*record 1 .*unlucky"):
            ds[asked]
    told: list[int] = []

    def instead(error: sk.CorruptRecord) -> dict[str, Any]:
        told.append(error.row)
        return {"number": 0, "negative": False}

    mended = sk.open(tmp_path, errors=instead)
    assert [record["number"] for record in mended] == [1, 2, 3, 4, 5, 0, 6]
    assert told == [1]


def test_a_format_that_returns_too_few_records_is_refused(tmp_path: Path) -> None:
    class Short(Fixed):
        __slots__ = ()

        def read_rows(self, path: str, rows: Sequence[int], columns: Sequence[str] | None) -> Sequence[Any]:
            return super().read_rows(path, rows, columns)[1:]

    write_numbers(tmp_path)
    with pytest.raises(sk.errors.InvalidArgument, match="returned 1 records for 2 rows"):
        sk.open(tmp_path, format=Short())[[0, 1]]


class TakenName(Logs):
    """A format that would share the index of lines of text."""

    __slots__ = ()
    card: ClassVar[Card] = Card(name="text", home="mine:TakenName", suffixes=(".log",))


class OtherFinder(Logs):
    """A format whose index would be that of another."""

    __slots__ = ()
    card: ClassVar[Card] = Card(name="others", home="mine:OtherFinder", suffixes=(".log",))


class Again(Logs):
    """A second format of one name."""

    __slots__ = ()
    card: ClassVar[Card] = Card(name="others", home="mine:Again", suffixes=(".log",))


class OwnLines(sk.formats.Jsonl):
    """A format of ours with another finder would read its index."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (TakenName, "has the name 'text', which is that of seekable.formats.lines.text:Text"),
        (OtherFinder, "the finder of .*OtherFinder has the name 'entry', and the format 'others'"),
        (Again, "are both formats of the name 'others'"),
        (OwnLines, "has the name 'jsonl', which is that of seekable.formats.lines.jsonl:Jsonl"),
    ],
)
def test_two_formats_never_share_an_index(form: type[Any], told: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("> 1\n")
    for way in (sk.open, verify):
        with pytest.raises(sk.errors.UnsupportedFormat, match=told):
            way(tmp_path / "a.log", format=form())
    assert not (tmp_path / ".seekable").exists()


def test_a_format_that_was_given_once_opens_no_other_data(tmp_path: Path) -> None:
    """What is opened depends on the call alone, and not on those before it."""

    class Notes(Logs):
        __slots__ = ()
        card: ClassVar[Card] = Card(name="entry", home=plugin_formats.WORDS["entry"], suffixes=(".notes",))

    (tmp_path / "a.notes").write_text("> 1\n")
    assert len(sk.open(tmp_path / "a.notes", format=Notes())) == 1
    with pytest.raises(sk.errors.UnsupportedFormat, match="suffix of no known format"):
        sk.open(tmp_path / "a.notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needing(Fixed):
    """A format with an option that has no default, or one that JSON lacks."""

    need: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling(Fixed):
    """A format with an option that may be a function."""

    call: Any = None


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (Needing(need=1), "the option 'need' of Needing must have a default"),
        (Calling(call=len), "the option 'call' of Calling must be a number, a text"),
        (Calling(call=np.arange(3)), "the option 'call' of Calling must be a number, a text"),
    ],
)
def test_options_that_no_fingerprint_can_have_are_refused(form: Fixed, told: str, tmp_path: Path) -> None:
    write_numbers(tmp_path)
    with pytest.raises(sk.errors.InvalidArgument, match=told):
        sk.open(tmp_path, format=form)


def test_a_format_that_returns_no_list_is_refused(tmp_path: Path) -> None:
    class Nothing(Fixed):
        __slots__ = ()

        def read_rows(self, path: str, rows: Sequence[int], columns: Sequence[str] | None) -> Any:
            return None

    write_numbers(tmp_path)
    ds = sk.open(tmp_path, format=Nothing())
    for asked in (0, [1, 0]):
        with pytest.raises(sk.errors.InvalidArgument, match="read_rows returned None"):
            ds[asked]


def test_a_card_that_differs_from_its_entry_point_is_named(tmp_path: Path) -> None:
    write_numbers(tmp_path)
    with pytest.raises(sk.errors.UnsupportedFormat, match="both must say the same"):
        sk.open(tmp_path, format="misnamed")
    with pytest.raises(sk.MissingDependency, match="'broken' of the package 'own-formats'"):
        sk.open(tmp_path, format="broken")


def test_data_of_ours_is_opened_without_a_look_at_packages(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    assert sk.open(tmp_path)[0] == "one"


class OneTooMany(Fixed):
    """A batch has the next number, too."""

    __slots__ = ()

    def read_rows(self, path: str, rows: Sequence[int], columns: Sequence[str] | None) -> Sequence[Any]:
        found = super().read_rows(path, rows, columns)
        return [found[-1] for _ in found]


class Forgetful(Fixed):
    """What is read depends on what was read before."""

    __slots__ = ()
    seen: ClassVar[list[int]] = []

    def read_rows(self, path: str, rows: Sequence[int], columns: Sequence[str] | None) -> Sequence[Any]:
        self.seen.extend(rows)
        return [{"number": len(self.seen), "negative": False} for _ in rows]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (OneTooMany, "test_a_record_is_the_same_however_it_is_read"),
        (Forgetful, "test_records_are_right"),
        (Forgetful, "test_a_record_is_the_same_however_it_is_read"),
    ],
)
def test_a_format_that_breaks_the_contract_is_found(form: type[Fixed], name: str) -> None:
    class Tests(TestRows):
        options: ClassVar[dict[str, Any]] = {"format": form()}

    with pytest.raises(AssertionError):
        getattr(Tests(), name)()


def test_a_class_without_write_says_so() -> None:
    with pytest.raises(sk.errors.WrongType, match="must have a method write"):
        FormatTests().test_records_are_right()


def test_each_test_is_documented() -> None:
    for name, test in inspect.getmembers(FormatTests, inspect.isfunction):
        assert inspect.getdoc(test) or name.startswith("_")


LAWS = sorted(name for name in vars(FormatTests) if name.startswith("test_"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("law", LAWS)
def test_our_formats_keep_the_contract(law: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case: Case = PLAIN[name][0]

    class Tests(FormatTests):
        options: ClassVar[dict[str, Any]] = case.options

        def write(self, folder: str) -> Any:
            monkeypatch.chdir(folder)
            case.write(Path(folder))
            return source_of(case.asked, folder)

        def records(self) -> list[Any]:
            with self._written() as source:
                return list(self.open(source, index=sk.Index(jobs=1)))

    getattr(Tests(), law)()
