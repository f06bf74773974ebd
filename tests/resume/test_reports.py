"""What is said of each source: the lines of the log at a resume, ``sources()``, and the counts in them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.resume.datasets import Batches, mixed, ordered, pipeline, rows_in, source, through_json
from tests.resume.streams import stages, stamped, stamps_in, stream
from tests.thrift import some

import seekable as sk
from seekable.loader.positioned import resumed_of
from seekable.stream import SameItems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from seekable.stream import Lane, Token

UNSHRUNK = settings(deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def loader_of(data: Any, **options: Any) -> sk.Loader:
    return sk.Loader(data, **{"batch_size": 10, "collate": list, "prefetch": 0, **options})


def texts(folder: Path, *counts: int) -> Path:
    folder.mkdir()
    for number, count in enumerate(counts, start=1):
        lines = "".join(f"{folder.name}{number}-{row}\n" for row in range(count))
        (folder / f"{number}.txt").write_text(lines, encoding="utf-8")
    return folder


def two(folder: Path) -> sk.Dataset:
    """Mix two sources of two files each, both in natural order."""
    web, code = texts(folder / "web", 20, 30), texts(folder / "code", 5, 45)
    return of_two(web, code)


def of_two(web: Path, code: Path) -> sk.Dataset:
    parts = {"web": sk.open(web), "code": sk.open(f"{code}/*.txt")}
    return sk.mix(parts, weights={"web": 3, "code": 1}, seed=1, stop="never")


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {record.name for record in caplog.records} <= {"seekable"}
    return [record.getMessage() for record in caplog.records]


def test_an_exact_resume_names_each_source_in_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = two(tmp_path)
    first = loader_of(data, batch_size=40)
    next(iter(first))
    again = loader_of(data)
    with caplog.at_level(logging.INFO, logger="seekable"):
        again.load_state_dict(through_json(first.state_dict()))
    lines = [
        f"resume: spec={tmp_path}/web sample_row=32 shard=2.txt offset=12",
        f"resume: spec={tmp_path}/code/*.txt sample_row=8 shard=2.txt offset=3",
    ]
    assert lines_of(caplog) == lines
    assert str(resumed_of(again)) == "\n".join(lines)
    assert first.sources() == again.sources() == sk.state_sources(first.state_dict(), loader_of(data))
    assert first.sources()[1] == {
        "spec": f"{tmp_path}/code/*.txt",
        "name": "code",
        "epoch": 0,
        "rows": 8,
        "of": 50,
        "consumed": 8,
        "in_flight": 0,
        "shard": "2.txt",
        "row_offset": 3,
    }


def test_load_state_returns_the_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data, folder = two(tmp_path), tmp_path / "states"
    again = loader_of(data)
    with caplog.at_level(logging.INFO, logger="seekable"):
        assert sk.load_state(folder, again) is False
    assert lines_of(caplog) == [f"resume: no saved state in {folder}: the run begins anew"]
    first = loader_of(data)
    next(iter(first))
    sk.save_state(folder, first)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="seekable"):
        resumed = sk.load_state(folder, again)
    assert resumed
    assert resumed.sources == first.sources()
    assert str(resumed).splitlines() == lines_of(caplog)
    next(iter(again))
    assert resumed.sources == first.sources() != again.sources()
    with caplog.at_level(logging.INFO, logger="seekable"):
        by_rows = sk.load_state(folder, loader_of(data.map(str.upper)), resume="rows")
    assert str(by_rows) == str(resumed)


def test_an_empty_state_begins_a_run_anew(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="seekable"):
        loader_of(source("a", 9)).load_state_dict({})
    assert lines_of(caplog) == ["resume: an empty state: the run begins anew"]


def test_a_resume_reads_no_record_and_no_data_file_and_writes_no_line_where_none_is_wanted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Unread:
        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, row: int) -> int:
            raise AssertionError(row)

    data = sk.from_sequence(Unread()).shuffle(seed=1)
    loader = loader_of(data)
    loader.skip_batches(10**7)
    with caplog.at_level(logging.INFO, logger="seekable"):
        loader.load_state_dict(loader.state_dict())
    assert len(lines_of(caplog)) == 1
    assert f"sample_row={10**8} " in lines_of(caplog)[0]
    folder = texts(tmp_path / "gone", 50)
    files = loader_of(sk.open(folder).shuffle(seed=1))
    files.skip_batches(2)
    state = files.state_dict()
    for path in folder.glob("*.txt"):
        path.unlink()
    files.load_state_dict(state)
    assert files.sources()[0]["rows"] == 20


def test_five_hundred_sources_have_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    parts = {f"s{number}": source(f"s{number}", 1000).shuffle(seed=number) for number in range(500)}
    loader = loader_of(sk.mix(parts, seed=1, stop="never"), batch_size=5000)
    loader.skip_batches(1)
    with caplog.at_level(logging.INFO, logger="seekable"):
        loader.load_state_dict(loader.state_dict())
    assert len(lines_of(caplog)) == 500
    assert sum(each["consumed"] for each in loader.sources()) == 5000


@pytest.mark.frameworks(name="torch")
def test_moves_that_are_no_resumes_write_no_lines(caplog: pytest.LogCaptureFixture) -> None:
    torch = pytest.importorskip("seekable.integrations.torch")
    sampler = torch.BatchSampler(source("a", 40), batch_size=4)
    run = iter(sampler)
    with caplog.at_level(logging.INFO, logger="seekable"):
        next(run)
        state = sampler.state_dict(delivered=1)
        assert state == sampler.state_dict(delivered=1)
        assert lines_of(caplog) == []
        sampler.load_state_dict(state)
    assert lines_of(caplog) == [str(resumed_of(sampler._loader))]
    assert " sample_row=4 shard=<builtins.list a> offset=4" in str(resumed_of(sampler._loader))


SHOWN = """
import logging, sys
{setup}
import seekable as sk
loader = sk.Loader(sk.from_sequence("abcdef", version=1), batch_size=2, collate=list, prefetch=0)
next(iter(loader))
loader.load_state_dict(loader.state_dict())
assert not logging.getLogger().handlers or {has_root}
assert logging.getLogger().level == logging.WARNING
"""
LINE = "resume: spec=from_sequence(<builtins.str of 6>) sample_row=2 shard=<builtins.str 1> offset=2\n"


NOT_SHOWN = pytest.param("", "warning", "", marks=pytest.mark.exhaustive)
NOT_SET = pytest.param("", None, "", marks=pytest.mark.exhaustive)


@pytest.mark.parametrize(
    ("setup", "level", "printed"),
    [
        ("", "info", LINE),
        NOT_SHOWN,
        NOT_SET,
        ("logging.basicConfig(format='root: %(message)s')", "info", f"root: {LINE}"),
        (
            "log = logging.getLogger('seekable'); log.propagate = 0; log.addHandler(logging.StreamHandler())",
            "INFO",
            LINE,
        ),
    ],
)
def test_a_variable_shows_the_lines_once(setup: str, level: str | None, printed: str) -> None:
    code = SHOWN.format(setup=setup, has_root="basicConfig" in setup)
    done = run_with(code, level)
    assert (done.returncode, done.stderr) == (0, printed)


def test_a_level_that_there_is_not_is_refused() -> None:
    done = run_with(SHOWN.format(setup="", has_root=False), "loud")
    assert "SEEKABLE_LOG must be one of debug, info, warning (got 'loud')" in done.stderr


def run_with(code: str, level: str | None) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "SEEKABLE_LOG"}
    env |= {} if level is None else {"SEEKABLE_LOG": level}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


@UNSHRUNK
@given(st.integers(0, 2**32))
def test_rows_consumed_are_those_that_were_delivered(seed: int) -> None:
    random = Random(seed)
    sizes = {name: random.randint(12, 60) for name in random.choice(["a", "ab", "abc"])}
    loader = loader_of(pipeline(sizes, random), batch_size=random.randint(1, 5))
    batches, came = Batches(loader), Counter[str]()
    for _ in range(4):
        sources = checked_sources(loader)
        assert by_letter(sources, "consumed") == came
        for each in sources:
            # Lanes of a mixture may be in two epochs of a source.
            assert each["rows"] <= each["consumed"] <= each["epoch"] * each["of"] + each["rows"]
        came.update(row[0] for row in rows_in(batches.next(random.randint(0, 20))))


PULLED = Counter[str]()
"""Of each source the rows that streams have drawn."""


@dataclass(frozen=True, eq=False, repr=False)
class Counted(SameItems):
    """Counts the records that pass; it takes single items, and so draws none that are not delivered."""

    kind: ClassVar[str] = "tests.counted"

    def items(self, lane: Lane) -> Iterator[tuple[Token, Any]]:
        for token, stamp in lane.inputs[0]:
            PULLED[stamp[0][0]] += 1
            yield token, stamp

    def arguments(self) -> dict[str, Any]:
        return {}

    def shown(self, inputs: Sequence[str]) -> str:
        return f"{inputs[0]}.then(Counted())"


def counted(source: sk.Stream) -> sk.Stream:
    return source.map(stamped).then(Counted())


@UNSHRUNK
@given(st.integers(0, 2**32))
def test_rows_in_flight_are_those_that_were_drawn_and_not_delivered(seed: int) -> None:
    random = Random(seed)
    sizes = {name: random.randint(12, 60) for name in random.choice(["a", "ab", "abc"])}
    parts = {name: ordered(source(name, size), random) for name, size in sizes.items()}
    lanes = random.choice([1, 1, 2, 3])
    if len(parts) > 1 and random.random() < 0.5:
        streams = {name: counted(part.stream(lanes=lanes)) for name, part in parts.items()}
        made = sk.mix(streams, seed=3, weights={name: random.choice([1, 2, 3]) for name in parts})
    else:
        dataset = mixed(parts, random) if len(parts) > 1 else next(iter(parts.values()))
        made = counted(dataset.stream(lanes=lanes))
    made = stages(made, random)
    PULLED.clear()
    loader = loader_of(made, batch_size=random.randint(1, 5))
    batches, items = Batches(loader), list[Any]()
    for _ in range(3):
        sources, came = checked_sources(loader), Counter(row[0] for row, _ in stamps_in(items))
        consumed = by_letter(sources, "consumed")
        assert consumed + by_letter(sources, "in_flight") == PULLED
        assert came == consumed if ".filter(" not in repr(made) else came <= consumed
        items += batches.next(random.randint(0, 12))


def checked_sources(loader: sk.Loader) -> list[dict[str, Any]]:
    """Return the sources, which are JSON-safe, and the same of a state."""
    sources = loader.sources()
    assert sources == json.loads(json.dumps(sources))
    assert sources == sk.state_sources(through_json(loader.state_dict()), loader)
    return sources


def by_letter(sources: list[dict[str, Any]], key: str) -> Counter[str]:
    """Return a value of each source, by the letter that its records begin with."""
    return Counter({each["shard"].removesuffix(">")[-1]: each[key] for each in sources})


@pytest.mark.parametrize("stop", ["first", "never"])
def test_the_row_offset_is_that_of_the_row_that_comes_next(stop: Any) -> None:
    parts = [source("a", 30).shuffle(seed=1), source("b", 20)[3:], source("c", 9).filter(is_odd)]
    inner = sk.mix(parts[1:], seed=4)
    data = sk.mix([parts[0], inner], weights=[1, 2], seed=5, stop=stop)
    loader = loader_of(data, batch_size=1, steps=40, end="short")
    rows = [row for (row,) in loader]
    loader = loader_of(data, batch_size=1, steps=40)
    for step, _ in enumerate(iter(loader), start=1):
        for each in loader.sources():
            letter = each["shard"].removesuffix(">")[-1]
            following = next((row for row in rows[step:] if row[0] == letter), None)
            assert following in (None, f"{letter}{each['row_offset']}")


def is_odd(row: str) -> bool:
    return int(row[1:]) % 2 == 1


def test_of_records_made_of_several_the_first_is_named() -> None:
    pairs = sk.zip([source("a", 9), source("b", 9).shuffle(seed=1)]).batch(2)
    loader = loader_of(pairs, batch_size=2)
    next(iter(loader))
    (each,) = loader.sources()
    assert (each["rows"], each["of"], each["shard"], each["row_offset"]) == (4, 9, "<builtins.list a>", 4)
    assert each["spec"] == "from_sequence(<builtins.list of 9>)"


def test_a_node_above_a_mixture_is_one_source() -> None:
    both = sk.mix([source("a", 30), source("b", 30)], seed=1, stop="first")
    loader = loader_of(both.shuffle(seed=3))
    following = [row for batch in loader for row in batch][10]
    loader = loader_of(both.shuffle(seed=3))
    next(iter(loader))
    (each,) = loader.sources()
    assert (each["name"], each["rows"], each["of"], each["epoch"]) == ("", 10, len(both), 0)
    assert f"{each['shard'][-2]}{each['row_offset']}" == following


def test_what_is_not_known_is_none(caplog: pytest.LogCaptureFixture) -> None:
    stream = sk.mix(
        {"a": source("a", 9).stream(epochs=1).repeat(), "b": source("b", 9).stream()}, seed=1, weights=[1, 1]
    )
    loader = loader_of(stream)
    next(iter(loader))
    with caplog.at_level(logging.INFO, logger="seekable"):
        loader.load_state_dict(loader.state_dict())
    line = "resume: spec=from_sequence(<builtins.list of 9>) sample_row=- shard=- offset=-"
    assert lines_of(caplog) == [line, line]
    assert [(each["name"], each["of"], each["rows"]) for each in loader.sources()] == [
        ("a", 9, None),
        ("b", 9, None),
    ]
    plain = loader_of(sk.from_iterable(lambda: iter(range(30)), version=1))
    assert plain.sources()[0]["rows"] is None
    rank = sk.Loader(source("a", 40).stream(lanes=4), global_batch_size=8, rank=0, world_size=2)
    assert rank.sources()[0]["rows"] is None


def test_lanes_of_all_ranks_are_counted_at_a_resume(tmp_path: Path) -> None:
    def ranks() -> list[sk.Loader]:
        return [
            loader_of(
                source("a", 40).stream(lanes=4), batch_size=None, global_batch_size=8, rank=rank, world_size=2
            )
            for rank in range(2)
        ]

    for loader in ranks():
        next(iter(loader))
        sk.save_state(tmp_path, loader)
    for loader in ranks():
        resumed = sk.load_state(tmp_path, loader)
        assert resumed
        assert [each["rows"] for each in resumed.sources] == [8]


def test_the_state_of_another_pipeline_has_no_sources_of_this_one() -> None:
    with pytest.raises(sk.StateMismatch, match="length was 9, is 8"):
        sk.state_sources(loader_of(source("a", 9)).state_dict(), loader_of(source("a", 8)))


def test_data_in_place_of_a_loader_is_named(tmp_path: Path) -> None:
    data, folder = source("a", 9), tmp_path / "states"
    state: Any = loader_of(data).state_dict()
    wrong: Any = data
    for use in (
        partial(sk.state_sources, state),
        partial(sk.state_from_sample_index, 3),
        partial(sk.save_state, folder),
        partial(sk.load_state, folder),
    ):
        with pytest.raises(
            sk.errors.WrongType, match=r"sk\.Loader \(got <Dataset, 9 .* of type Dataset\): wrap"
        ):
            use(wrong)
    assert not folder.exists()


def test_rows_of_a_run_resumed_by_rows_are_those_of_the_begun_epoch(tmp_path: Path) -> None:
    folder = texts(tmp_path / "web", 20)
    first = loader_of(sk.open(folder), epochs=3)
    next(iter(first))
    (folder / "2.txt").write_text("new\n" * 5, encoding="utf-8")
    again = loader_of(sk.open(folder).shuffle(seed=1), batch_size=5, epochs=3)
    again.load_state_dict(first.state_dict(), resume="rows")
    found: list[tuple[int, int, int]] = []
    for _ in range(4):
        next(iter(again)) if not found else None
        (each,) = again.sources()
        found.append((each["epoch"], each["rows"], each["of"]))
        state = again.state_dict()
        again.load_state_dict(state)
        next(iter(again))
    assert found == [(0, 15, 20), (0, 20, 20), (1, 5, 25), (1, 10, 25)]


@settings(UNSHRUNK, max_examples=some(25, of=2))
@given(st.integers(0, 2**32))
def test_rows_stay_what_they_were_when_a_run_is_resumed_by_rows(seed: int) -> None:
    random = Random(seed)
    sizes = {name: random.randint(20, 60) for name in random.choice(["a", "ab", "abc"])}
    kind: Any = random.choice([pipeline, stream])
    old = loader_of(kind(sizes, random), batch_size=random.randint(1, 5))
    Batches(old).next(random.randint(0, 25))
    for _ in range(2):
        new = loader_of(kind(sizes, random), batch_size=random.randint(1, 5))
        new.load_state_dict(through_json(old.state_dict()), resume="rows")
        resumed = resumed_of(new)
        assert resumed is not None
        assert resumed.sources == new.sources()
        assert by_letter(new.sources(), "consumed") == by_letter(old.sources(), "consumed")
        # The rounds of a repeated source are no epochs of its own.
        if all(each["of"] in sizes.values() for each in [*old.sources(), *new.sources()]):
            assert by_letter(new.sources(), "rows") == by_letter(old.sources(), "rows")
        Batches(new).next(random.randint(0, 10))
        old = new
