"""Checkpoints with a shard and a row of each source, ``resume_state``, both ways, and with less than that."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.hub import Repo, Warm, environment, serving
from tests.resume.datasets import Batches, rows_in, source, through_json

import seekable as sk
from seekable.loader.positioned import resumed_of
from seekable.remote import hub_files, hub_listing

if TYPE_CHECKING:
    from collections.abc import Iterator

UNSHRUNK = settings(deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])

PAGE = """\
resume_state:
  datasets:
    - spec: hf:arnomatic/german-wikipedia-clean-no-lists:train:text
      shard: train-00087-of-01024.parquet
      row_offset: 128400
    - spec: hf:PatrickHaller/fineweb-2-de-1B:train:text
      shard: train-00012-of-00480.parquet
      row_offset: 51200
"""
TEXT_PAGE = """\
resume_state:
  datasets:
    - spec: txt:/data/corpus/shard_001.txt:text
      shard: /data/corpus/shard_001.txt
      row_offset: 910250
"""


def document_of(page: str) -> dict[str, Any]:
    """Read the page's YAML: a list of objects with a string or number for each key."""
    datasets: list[dict[str, Any]] = []
    for line in page.splitlines()[2:]:
        key, _, value = line.strip().removeprefix("- ").partition(": ")
        if key == "spec":
            datasets.append({})
        datasets[-1][key] = int(value) if value.isdigit() else value
    return {"resume_state": {"datasets": datasets}}


def loader_of(data: Any, **options: Any) -> sk.Loader:
    return sk.Loader(data, **{"batch_size": 10, "collate": list, "prefetch": 0, **options})


def write(path: Path, count: int, name: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name or path.stem}-{row}\n" for row in range(count)), encoding="utf-8")


def entry(spec: object, shard: object, row_offset: object) -> dict[str, Any]:
    return {"resume_state": {"datasets": [{"spec": spec, "shard": shard, "row_offset": row_offset}]}}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder of three files of 10, 0 and 25 lines."""
    for name, count in (("a", 10), ("b", 0), ("c", 25)):
        write(tmp_path / "corpus" / f"{name}.txt", count)
    return tmp_path / "corpus"


def test_the_example_of_text_files_word_for_word(tmp_path: Path) -> None:
    path = tmp_path / "corpus" / "shard_001.txt"
    path.parent.mkdir()
    path.write_text("".join(f"{row}\n" for row in range(910_260)))
    document = document_of(TEXT_PAGE.replace("/data", str(tmp_path)))
    loader = loader_of(sk.open(f"txt:{path}:text"))
    loader.load_state_dict(document)
    assert str(resumed_of(loader)) == (
        f"resume: spec=txt:{path}:text sample_row=910250 shard=shard_001.txt offset=910250"
    )
    assert loader.resume_state() == document
    assert list(loader) == [[{"text": str(row)} for row in range(910_250, 910_260)]]


ON_THE_HUB = """
from seekable.loader.positioned import resumed_of
document, options = json.loads(sys.argv[1]), {"batch_size": 4, "collate": list, "prefetch": 0}
specs = [each["spec"] for each in document["resume_state"]["datasets"]]
wiki, web = map(sk.open, specs)
loader = sk.Loader(sk.mix([wiki, web], seed=1, weights=[1, 1], stop="never"), **options)
loader.load_state_dict(document)
back, lines, run = loader.resume_state(), str(resumed_of(loader)), iter(loader)
texts = [record["text"] for _ in range(4) for record in next(run)]
tell({"back": back, "lines": lines.splitlines(), "texts": texts})
"""


def shard(name: str, rows: int) -> bytes:
    sink = io.BytesIO()
    text = pa.array([f"{name} {row}" for row in range(rows)])
    pq.write_table(pa.table({"text": text}), sink, row_group_size=2000, use_dictionary=False)
    return sink.getvalue()


def shards_of_page(document: dict[str, Any]) -> dict[str, dict[str, bytes]]:
    """Return the files of the repositories of the page; those it names and their neighbours have rows."""
    (wiki, _), (web, _) = specs_of(document)
    named = {wiki: (1024, 87, 128_402), web: (480, 12, 51_200)}
    empty = shard("empty", 0)
    return {
        repo: {
            f"train-{number:05}-of-{of:05}.parquet": shard(f"{number}", rows if number == its else 9)
            if abs(number - its) <= 1
            else empty
            for number in range(of)
        }
        for repo, (of, its, rows) in named.items()
    }


def specs_of(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the repository and the spec of each entry."""
    specs = [each["spec"] for each in document["resume_state"]["datasets"]]
    return [(spec.split(":")[1], spec) for spec in specs]


def check_goes_on_as_the_page_says(found: dict[str, Any], document: dict[str, Any]) -> None:
    (_, wiki), (_, web) = specs_of(document)
    assert found["lines"] == [
        f"resume: spec={wiki} sample_row=128409 shard=train-00087-of-01024.parquet offset=128400",
        f"resume: spec={web} sample_row=51209 shard=train-00013-of-00480.parquet offset=0",
    ]
    # The second source is behind the last row of its shard, which is the first row of the next one.
    document["resume_state"]["datasets"][1] |= {"shard": "train-00013-of-00480.parquet", "row_offset": 0}
    assert found["back"] == document
    texts = [text.split(" ") for text in found["texts"]]
    assert [int(row) for name, row in texts if name == "87"] == [128_400, 128_401]
    assert [int(row) for name, row in texts if name == "88"][:3] == [0, 1, 2]
    assert [int(row) for name, row in texts if name == "13"][:3] == [0, 1, 2]
    assert {name for name, _ in texts} == {"87", "88", "13"}


def test_the_example_of_the_hub_word_for_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The repositories lie in folders of this machine."""
    document = document_of(PAGE)
    for repo, files in shards_of_page(document).items():
        for name, data in files.items():
            (tmp_path / repo).mkdir(parents=True, exist_ok=True)
            (tmp_path / repo / name).write_bytes(data)
    parsed = hub_listing.hub_spec
    monkeypatch.setattr(
        hub_files, "hub_spec", lambda text: replace(parsed(text), repo=str(tmp_path / parsed(text).repo))
    )
    loader = mixed_of_page(document)
    resumed = sk.load_state(written(tmp_path / "checkpoint.json", {"step": 7, **document}), loader)
    back = loader.resume_state()
    texts = [record["text"] for _, batch in zip(range(4), loader, strict=False) for record in batch]
    lines = str(resumed).splitlines()
    check_goes_on_as_the_page_says({"back": back, "lines": lines, "texts": texts}, document)


def mixed_of_page(document: dict[str, Any]) -> sk.Loader:
    wiki, web = (sk.open(spec) for _, spec in specs_of(document))
    return loader_of(sk.mix([wiki, web], seed=1, weights=[1, 1], stop="never"), batch_size=4)


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


@pytest.mark.exhaustive
def test_the_example_of_the_hub_over_http(tmp_path: Path) -> None:
    document = document_of(PAGE)
    with serving() as (hub, _), Warm() as warm:
        for repo, files in shards_of_page(document).items():
            hub.repos[repo] = Repo()
            hub.repos[repo].commit(files)
        found = warm.run(ON_THE_HUB, environment(hub.endpoint, tmp_path), json.dumps(document))
        sent = hub.bytes_sent
    check_goes_on_as_the_page_says(found, document)
    assert sent < 3_000_000


def test_a_checkpoint_of_a_trainer_is_gone_on_with(corpus: Path) -> None:
    """The document may lie beside other fields, which may be the older count of samples too."""
    checkpoint = {"model": [1, 2], "step": 7, "sample_index": 3, **entry(str(corpus), "a.txt", 4)}
    before = through_json(checkpoint)
    loader = loader_of(sk.open(corpus), batch_size=3, epochs=2)
    loader.load_state_dict(checkpoint)
    assert checkpoint == before
    rows = list(rows_in(list(loader)))
    whole = list(sk.open(corpus))
    assert rows == whole[4:] + whole
    assert loader_of(sk.open(corpus)).sources()[0]["rows"] == 0
    assert sk.state_sources(checkpoint, loader)[0]["rows"] == 4


@pytest.mark.parametrize("resume", ["exact", "rows"])
def test_without_it_the_count_of_samples_counts(corpus: Path, resume: Any) -> None:
    loader = loader_of(sk.open(corpus).shuffle(seed=1), batch_size=5)
    loader.load_state_dict({"sample_index": 15, "resume_state": None, "model": []}, resume=resume)
    assert list(rows_in(list(loader))) == list(sk.open(corpus).shuffle(seed=1))[15:]
    stream = loader_of(sk.open(corpus).stream(epochs=1).shuffle(buffer=4, seed=1), batch_size=5)
    whole = list(rows_in(list(stream)))
    stream.load_state_dict({"sample_index": 15})
    assert list(rows_in(list(stream))) == whole[15:]
    with pytest.raises(sk.errors.WrongType, match="sample_index must be an integer"):
        loader.load_state_dict({"sample_index": "15"})


def test_a_checkpoint_in_a_file_is_loaded_too(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps({"step": 3, **entry(str(corpus), "c.txt", 20)}))
    loader = loader_of(sk.open(corpus))
    resumed = sk.load_state(path, loader)
    assert str(resumed) == f"resume: spec={corpus} sample_row=30 shard=c.txt offset=20"
    assert list(loader) == [[f"c-{row}" for row in range(20, 25)]]
    again = loader_of(sk.open(corpus))
    next(iter(again))
    assert sk.load_state(sk.save_state(tmp_path / "states", again), loader)
    assert loader.state_dict() == again.state_dict()
    path.write_text('{"step": 3}')
    with pytest.raises(sk.errors.CorruptState, match="a state must have 'seekable': 1"):
        sk.load_state(path, loader)


def test_a_state_of_this_library_is_preferred(corpus: Path) -> None:
    loader = loader_of(sk.open(corpus))
    next(iter(loader))
    state = loader.state_dict() | entry(str(corpus), "a.txt", 4)
    again = loader_of(sk.open(corpus))
    again.load_state_dict(state)
    assert again.state_dict() == loader.state_dict()


def test_rows_behind_come_to_the_end_of_the_epoch_and_then_whole_epochs(corpus: Path) -> None:
    whole = list(sk.open(corpus))
    assert len(whole) == 35
    for shard_name, row, before in [("a.txt", 0, 0), ("a.txt", 10, 10), ("b.txt", 0, 10), ("c.txt", 24, 34)]:
        loader = loader_of(sk.open(corpus), epochs=3)
        loader.load_state_dict(entry(str(corpus), shard_name, row))
        assert list(rows_in(list(loader))) == whole[before:] + 2 * whole
        stream = loader_of(sk.open(corpus).stream(epochs=2, lanes=3))
        stream.load_state_dict(entry(str(corpus), shard_name, row))
        assert sorted(rows_in(list(stream))) == sorted(whole[before:] + whole)
    ended = loader_of(sk.open(corpus))
    ended.load_state_dict(entry(str(corpus), "c.txt", 25))
    assert list(ended) == []
    assert list(rows_in(list(ended))) == whole


@pytest.mark.parametrize("name", ["{}/c.txt", "c.txt", "/elsewhere/c.txt"])
def test_a_shard_is_found_by_its_name_or_its_path(corpus: Path, name: str) -> None:
    loader = loader_of(sk.open(corpus))
    loader.load_state_dict(entry(str(corpus), name.format(corpus), 24))
    assert list(loader) == [["c-24"]]


def test_what_a_run_says_at_the_ends_of_epochs(corpus: Path) -> None:
    def said() -> list[Any]:
        ((found,),) = [loader.resume_state()["resume_state"]["datasets"]]
        return [found["shard"], found["row_offset"]]

    loader = loader_of(sk.open(corpus), batch_size=35, epochs=2)
    run = iter(loader)
    assert said() == ["a.txt", 0]
    next(run)
    assert said() == ["c.txt", 25]
    next(run)
    assert said() == ["c.txt", 25]
    assert list(run) == []
    assert said() == ["a.txt", 0]
    loader.set_epoch(7)
    assert said() == ["a.txt", 0]


def same(row: str) -> str:
    return row


def is_odd(row: str) -> bool:
    return int(row[1:]) % 2 == 1


def some(row: str) -> list[str]:
    return [row] * (int(row[1:]) % 2)


def natural(name: str, size: int, random: Random) -> sk.Dataset:
    """Return a source in natural order, perhaps of some of its rows."""
    plain, first = source(name, size), random.randint(0, 3)
    kinds: list[sk.Dataset] = [
        plain,
        plain.map(same),
        plain[first:-2],
        plain[first :: random.randint(2, 3)],
        plain.filter(is_odd),
        plain.select(sorted(random.sample(range(size), size // 2))),
        plain.split({"a": 0.5, "b": 0.5}, seed=1)["a"],
        plain.split({"a": 0.5, "b": 0.5}, seed=1, stable=True)["a"],
        plain.sample(size // 2, seed=1),
        plain.flatten(some),
        sk.concat([plain, source(f"{name}!", first), plain[:0]][:2]),
    ]
    return random.choice(kinds)


def combined(parts: dict[str, sk.Dataset], random: Random) -> sk.Dataset:
    if len(parts) == 1:
        (made,) = parts.values()
    else:
        stop: Any = random.choice(["first", "never", "all"])
        weights = {name: random.choice([1, 2, 3]) for name in parts}
        made = sk.mix(parts, weights=weights, seed=random.randint(0, 9), stop=stop)
    return made.batch(random.randint(1, 3)) if random.random() < 0.2 else made


def came(batches: Batches, steps: int) -> dict[str, list[str]]:
    """Return what comes of each source in some steps, over the ends of runs."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows_in(batches.next(steps)):
        found[row[0]].append(row)
    return found


@UNSHRUNK
@given(st.integers(0, 2**32))
def test_each_source_goes_on_exactly_behind(seed: int) -> None:
    random = Random(seed)
    sizes = {name: random.randint(12, 50) for name in random.choice(["a", "ab", "abc"])}
    parts = {name: natural(name, size, random) for name, size in sizes.items()}
    first = loader_of(combined(parts, random), batch_size=random.randint(1, 5))
    batches = Batches(first)
    batches.next(random.randint(0, 20))
    document = through_json(first.resume_state())
    again = loader_of(combined(parts, random), batch_size=random.randint(1, 5))
    again.load_state_dict(document)
    assert again.resume_state() == document
    rest, later = came(batches, 40), came(Batches(again), 40)
    for name in parts:
        count = min(len(rest[name]), len(later[name]))
        assert rest[name][:count] == later[name][:count]
        assert count


@UNSHRUNK
@given(st.integers(0, 2**32))
def test_the_same_mixture_goes_on_exactly_within_the_first_epoch(seed: int) -> None:
    random = Random(seed)
    parts = {name: source(name, random.randint(60, 90)) for name in "ab"}
    data = combined(parts, random)
    first, again = loader_of(data, batch_size=3), loader_of(data, batch_size=3)
    Batches(first).next(random.randint(0, 8))
    again.load_state_dict(first.resume_state())
    exact, offsets = first.state_dict(rows=False), again.state_dict(rows=False)
    for key in ("step", "check"):
        del exact[key], offsets[key]
    assert exact == offsets


def test_rows_in_flight_of_a_stream_are_left_out_and_none_comes_twice() -> None:
    stream = source("a", 60).stream(lanes=2, epochs=1).shuffle(buffer=7, seed=1)
    first = loader_of(stream, batch_size=5)
    run = iter(first)
    before = {row for _ in range(4) for row in next(run)}
    (said,) = first.sources()
    again = loader_of(stream, batch_size=5)
    again.load_state_dict(through_json(first.resume_state()))
    rest = list(rows_in(list(again)))
    assert len(rest) == len({*rest}) == 60 - len(before) - said["in_flight"]
    assert not before & {*rest}
    assert rest != sorted(rest)


def test_the_same_source_twice_has_two_entries_in_order() -> None:
    parts = [source("a", 40), source("a", 40)]
    first = loader_of(sk.mix(parts, weights=[3, 1], seed=1, stop="never"), batch_size=20)
    next(iter(first))
    document = first.resume_state()
    spec = "from_sequence(<builtins.list of 40>)"
    rows = [each["row_offset"] for each in document["resume_state"]["datasets"]]
    assert {each["spec"] for each in document["resume_state"]["datasets"]} == {spec}
    again = loader_of(sk.mix(parts, weights=[1, 1], seed=1, stop="never"), batch_size=20)
    again.load_state_dict(document)
    assert [each["rows"] for each in again.sources()] == rows != [10, 10]
    with pytest.raises(sk.StateMismatch, match=r"has 2 entries for .*, and the pipeline reads it 1 times"):
        loader_of(parts[0]).load_state_dict(document)


def two(corpus: Path) -> sk.Dataset:
    return sk.mix([sk.open(corpus / "a.txt"), sk.open(corpus / "c.txt")], seed=1, stop="never")


Broken = list[tuple[Any, type[sk.SeekableError], str]]
BROKEN: Broken = [
    (
        entry("{}", "d.txt", 0),
        sk.StateMismatch,
        r"shard 'd.txt' .* has 0 shards of that name among its 3: 'a.txt'",
    ),
    (entry("{}", "a.txt", 11), sk.StateMismatch, r"row 11 of shard 'a.txt' .*/a.txt has 10 rows"),
    (
        entry("other", "a.txt", 1),
        sk.StateMismatch,
        r"names 'other', which the pipeline does not read: it reads '/",
    ),
    (entry("{}", "a.txt", -1), sk.errors.CorruptState, r"'row_offset' of .* must be at least 0 \(got -1\)"),
    (
        entry("{}", "a.txt", "1"),
        sk.errors.CorruptState,
        r"must have 'row_offset', an integer of at least 0 \(got '1'\)",
    ),
    (entry("{}", "a.txt", [1]), sk.errors.CorruptState, r"must have 'row_offset'"),
    (entry("{}", None, 1), sk.errors.CorruptState, r"must have 'shard', a string \(got None\)"),
    (entry(None, "a.txt", 1), sk.errors.CorruptState, r"must have 'spec', a string \(got None\)"),
    ({"resume_state": {"datasets": []}}, sk.StateMismatch, r"no entry for .*: add one, with the first shard"),
    ({"resume_state": {"datasets": ["a"]}}, sk.errors.CorruptState, r"must be an object \(got 'a'\)"),
    ({"resume_state": {"datasets": 1}}, sk.errors.CorruptState, r"an object with a list 'datasets'"),
    ({"resume_state": 7}, sk.errors.CorruptState, r"an object with a list 'datasets' .*got 7"),
    ({"model": 1}, sk.errors.CorruptState, r"a state must have 'seekable': 1 \(got None\)"),
]


@pytest.mark.parametrize(("document", "error", "message"), BROKEN)
def test_what_is_wrong_is_named(
    corpus: Path, document: Any, error: type[sk.SeekableError], message: str
) -> None:
    text = json.dumps(document).replace("{}", str(corpus)).replace(f"[{corpus}]", "[]")
    document = document if "{}" not in json.dumps(document) else json.loads(text)
    loader = loader_of(sk.open(corpus))
    next(iter(loader))
    state = loader.state_dict()
    with pytest.raises(error, match=message):
        loader.load_state_dict(document)
    assert loader.state_dict() == state


def test_two_entries_for_one_source_are_refused(corpus: Path) -> None:
    document = entry(str(corpus), "a.txt", 1)
    document["resume_state"]["datasets"] *= 2
    with pytest.raises(sk.StateMismatch, match=r"has 2 entries for .* reads it 1 times: one entry"):
        loader_of(sk.open(corpus)).load_state_dict(document)


def test_a_source_without_an_entry_is_named(corpus: Path) -> None:
    with pytest.raises(sk.StateMismatch, match=r"no entry for '.*c\.txt': add one"):
        loader_of(two(corpus)).load_state_dict(entry(str(corpus / "a.txt"), "a.txt", 1))


def test_a_name_of_two_shards_is_refused(tmp_path: Path) -> None:
    for folder in "xy":
        write(tmp_path / folder / "a.txt", 5)
    loader = loader_of(sk.open(tmp_path))
    with pytest.raises(
        sk.StateMismatch, match=r"has 2 shards of that name among its 2: 'x/a.txt', 'y/a.txt'"
    ):
        loader.load_state_dict(entry(str(tmp_path), "a.txt", 3))
    loader.load_state_dict(entry(str(tmp_path), "y/a.txt", 3))
    assert list(loader) == [["a-3", "a-4"]]


@pytest.mark.parametrize("kind", ["list", "concat"])
def test_a_name_of_two_shards_is_told_with_the_folder_that_distinguishes_them(
    tmp_path: Path, kind: str
) -> None:
    folders = [tmp_path / name for name in ("x", "y/in", "z/in")]
    for folder in folders:
        write(folder / "a.txt", 5, name="/".join(folder.parts[-2:]))
        write(folder / f"own-{folder.parent.name}.txt", 5)

    def made() -> sk.Loader:
        data = sk.open(folders) if kind == "list" else sk.concat([sk.open(folder) for folder in folders])
        return loader_of(data, batch_size=3)

    whole = list(rows_in(list(made())))
    loader = made()
    told = []
    for delivered in range(0, 30, 3):
        state = loader.resume_state()
        told.append(state["resume_state"]["datasets"][0]["shard"])
        resumed = made()
        resumed.load_state_dict(through_json(state))
        assert list(rows_in(list(resumed))) == whole[delivered:]
        if not delivered:
            run = iter(loader)
        next(run)
    assert list(dict.fromkeys(told)) == [
        "x/a.txt", f"own-{tmp_path.name}.txt", "y/in/a.txt", "own-y.txt", "z/in/a.txt", "own-z.txt",
    ]  # fmt: skip


def test_a_shard_that_is_there_twice_has_no_row_offset(corpus: Path) -> None:
    loader = loader_of(sk.open([corpus / "a.txt", corpus / "a.txt"]))
    with pytest.raises(sk.errors.NotResumable, match=r"a\.txt is in it several times"):
        loader.resume_state()


def unnatural() -> Iterator[tuple[str, sk.Dataset]]:
    a, b = source("a", 30), source("b", 30)
    yield "shuffle", a.shuffle(seed=1)
    yield "shuffle", a.shuffle(seed=1, fixed=True).map(same)[2:]
    yield "windowed_shuffle", a.shuffle(seed=1, window=1, lanes=2)
    yield "interleave", a.interleave(lanes=2)
    yield "zip", sk.zip([a, b])
    yield "slice", a[::-1]
    yield "select", a.select([3, 1, 2])
    yield "concat", sk.concat([a[20:], a[:20]])
    yield "shuffle", sk.concat([a, b.shuffle(seed=1)])


@pytest.mark.parametrize(("kind", "data"), list(unnatural()))
def test_what_is_not_in_natural_order_is_refused(kind: str, data: sk.Dataset) -> None:
    for made in (data, data.stream(lanes=2), sk.mix([data, source("c", 9)], seed=1)):
        loader = loader_of(made)
        with pytest.raises(
            sk.errors.NotResumable, match=rf"Keep loader.state_dict\(\).* leave the {kind} out"
        ):
            loader.resume_state()
        spec = loader.sources()[0]["spec"]
        document = entry(spec, "<builtins.list a>", 3)
        if len(loader.sources()) > 1:
            other = loader.sources()[1]
            document["resume_state"]["datasets"].append(
                {"spec": other["spec"], "shard": "c", "row_offset": 3}
            )
        with pytest.raises(
            sk.errors.InvalidArgument, match=rf"Leave the {kind} out, .* loader.state_dict\(\)"
        ):
            loader.load_state_dict(document)


def test_a_node_above_a_mixture_is_refused(corpus: Path) -> None:
    loader = loader_of(sk.mix([sk.open(corpus)], seed=1).shuffle(seed=2))
    with pytest.raises(sk.errors.NotResumable, match="shuffle stands above a mixture"):
        loader.resume_state()
    with pytest.raises(sk.errors.InvalidArgument, match="shuffle stands above a mixture"):
        loader.load_state_dict(entry(str(corpus), "a.txt", 3))


def test_the_rest_of_an_older_order_has_no_row_offset(corpus: Path) -> None:
    first = loader_of(sk.open(corpus).shuffle(seed=1))
    next(iter(first))
    again = loader_of(sk.open(corpus), epochs=2)
    again.load_state_dict(first.state_dict(), resume="rows")
    run = iter(again)
    with pytest.raises(sk.errors.NotResumable, match="still delivers the rest of an older order"):
        again.resume_state()
    for _ in range(3):
        next(run)
    (said,) = again.resume_state()["resume_state"]["datasets"]
    assert (said["shard"], said["row_offset"]) == ("a.txt", 5)


def test_a_run_that_goes_on_so_is_saved_and_resumed_exactly(corpus: Path, tmp_path: Path) -> None:
    specs = [str(corpus / name) for name in ("a.txt", "c.txt")]
    document = {
        "resume_state": {
            "datasets": [
                {"spec": spec, "shard": Path(spec).name, "row_offset": row}
                for spec, row in zip(specs, (9, 1), strict=True)
            ]
        }
    }
    for made in (two(corpus), two(corpus).stream(lanes=2)):
        loader = loader_of(made, steps=20)
        loader.load_state_dict(document)
        run = iter(loader)
        next(run)
        sk.save_state(tmp_path / "states", loader)
        again = loader_of(made, steps=20)
        assert sk.load_state(tmp_path / "states", again)
        assert list(again) == list(run)


def test_ranks_of_a_stream_go_on_together(corpus: Path) -> None:
    def ranks(count: int) -> list[str]:
        rows: list[str] = []
        for rank in range(count):
            options = {"batch_size": None, "global_batch_size": 4, "rank": rank, "world_size": count}
            loader = loader_of(sk.open(corpus).stream(lanes=4), steps=5, **options)
            loader.load_state_dict(entry(str(corpus), "c.txt", 5))
            rows += rows_in(list(loader))
        return sorted(rows)

    assert ranks(1) == ranks(2) == sorted(list(sk.open(corpus))[15:])


def test_of_flattened_rows_none_comes_twice() -> None:
    """A row of which some items were delivered counts as delivered."""
    flat = source("a", 12).flatten(thrice)
    for steps in range(10):
        first = loader_of(flat, batch_size=4)
        run = iter(first)
        before = [item for _ in range(steps) for item in next(run)]
        again = loader_of(flat, batch_size=4)
        again.load_state_dict(through_json(first.resume_state()))
        rest = list(rows_in(list(again)))
        assert not {*before} & {*rest}
        assert [*before, *rest] == list(flat)[: len(before)] + list(flat)[-len(rest) or 36 :]
        assert 36 - len(before) - len(rest) in range(3)
    assert first.sources()[0]["of"] == 36


def thrice(row: str) -> list[str]:
    return [f"{row}-{number}" for number in range(3)]
