from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import Corpus, documents, output, run

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


def save(folder: Path, dataset: sk.Dataset | sk.Stream, *steps: int, **arguments: Any) -> None:
    loader = sk.Loader(dataset, collate=list, prefetch=0, **{"batch_size": 10, **arguments})
    for _ in loader:
        if loader.step in steps:
            sk.save_state(folder, loader)


@pytest.fixture
def states(corpus: Corpus) -> Path:
    """States of a run over a corpus, beside it."""
    save(corpus.folder.parent / "states", sk.open(corpus.folder).shuffle(seed=1), 2, 9, epochs=2)
    return corpus.folder.parent / "states"


def test_the_newest_state_is_shown(states: Path, corpus: Corpus) -> None:
    (shown,) = documents("state", "show", states)
    assert (shown["step"], shown["epoch"], shown["position"]) == (9, 0, 90)
    assert (shown["records"], shown["data_epoch"], shown["row"], shown["percent"]) == (120, 0, 90, 75.0)
    assert shown["generations"] == [
        {"step": step, "ranks": 1, "present": 1, "complete": True} for step in (2, 9)
    ]
    size = sum(path.stat().st_size for path in corpus.folder.glob("*.jsonl"))
    assert shown["sources"] == [
        {"kind": "files", "files": 3, "records": 120, "bytes": size, "roots": [str(corpus.folder)]}
    ]


def test_people_read_facts_and_the_pipeline(states: Path) -> None:
    text = output("state", "show", states).decode()
    assert "position     90: record 90 of 120 in epoch 0, 75.0 %\n" in text
    assert "at step 9    1 rank, complete\n" in text
    pipeline = text.partition("\n\n")[2].splitlines()
    assert pipeline[0] == "shuffle(seed=1)"
    assert pipeline[1].startswith("  files(decode='json', format='jsonl'): 120 records in 3 files, ")


def test_what_was_changed_in_the_run_is_shown(corpus: Corpus, tmp_path: Path) -> None:
    ds = sk.open(corpus.folder)
    mixed = sk.mix({"a": ds, "b": ds.shuffle(seed=2)}, weights=[1, 1], seed=1, stop="never")
    loader = sk.Loader(mixed, batch_size=10, collate=list, prefetch=0)
    loader.skip_batches(3)
    loader.steer({"a": 0.9, "b": 0.1})
    loader.exclude([ds.locate(5), ds.locate(80)], at=9)
    loader.skip_batches(4)
    sk.save_state(tmp_path / "states", loader)
    text = output("state", "show", tmp_path / "states").decode()
    assert "from step 3  weights a 9 : b 1, from position 30 on\n" in text
    assert "from step 9  2 rows of 2 files left out, others come in their places\n" in text
    (shown,) = documents("state", "show", tmp_path / "states")
    assert [(entry["at"], "steer" in entry, "exclude" in entry) for entry in shown["journal"]] == [
        (3, True, False),
        (9, False, True),
    ]
    assert {source["name"]: source["consumed"] for source in shown["progress"]} == {
        source["name"]: source["consumed"] for source in loader.sources()
    }
    # The order is rebuilt of the description and the journal, and so are the steps to come.
    for step in (8, 9, 12):
        (planned,) = documents("plan", tmp_path / "states", "--step", str(step), "--batch-size", "10")
        assert [record["location"]["row"] for record in planned["records"]] == [
            place.row for place in loader.locate(step=step)
        ]


def test_one_file_is_shown(states: Path) -> None:
    (path,) = states.glob("state-000000000002-*.json")
    (shown,) = documents("state", "show", path)
    assert (shown["step"], shown["generations"]) == (2, [])


def test_a_checkpoint_with_row_offsets_is_shown(tmp_path: Path, corpus: Corpus) -> None:
    loader = sk.Loader(sk.open(corpus.folder), batch_size=50, collate=list, prefetch=0)
    next(iter(loader))
    document = loader.resume_state()
    (entry,) = document["resume_state"]["datasets"]
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps({"model": "...", **document}), encoding="utf-8")
    (shown,) = documents("state", "show", path)
    assert (shown["path"], shown["progress"]) == (str(path), [entry])
    assert output("state", "show", path).decode().splitlines() == [
        f"path      {path}",
        f"source 0  next is row {entry['row_offset']} of {entry['shard']}; spec {corpus.folder}",
    ]
    path.write_text('{"resume_state": {"datasets": [{"spec": "a"}]}}', encoding="utf-8")
    refused = run("state", "show", path)
    assert refused.returncode == 1
    assert b"must have 'shard', a string" in refused.stderr


def test_a_generation_without_all_ranks_is_shown_as_that(states: Path, corpus: Corpus) -> None:
    dataset = sk.open(corpus.folder).shuffle(seed=1)
    ranks = {"batch_size": None, "global_batch_size": 10, "rank": 1, "world_size": 2}
    loader = sk.Loader(dataset, collate=list, prefetch=0, **ranks)  # type: ignore[arg-type]
    loader.skip_batches(11)
    (states / "state-000000000011-00001-of-00002.json").write_text(json.dumps(loader.state_dict()))
    (shown,) = documents("state", "show", states)
    assert shown["step"] == 9
    assert shown["generations"][-1] == {"step": 11, "ranks": 2, "present": 1, "complete": False}
    assert b"at step 11   2 ranks, not complete: 1 of them\n" in output("state", "show", states)


@pytest.mark.parametrize("lost", ["pipeline-*.json", "sources-*.json"])
def test_what_does_not_lie_beside_a_state_is_not_shown(states: Path, lost: str) -> None:
    (path,) = states.glob(lost)
    path.unlink()
    (shown,) = documents("state", "show", states)
    if lost.startswith("pipeline"):
        assert (shown["records"], shown["sources"]) == (None, None)
        assert shown["unknown"] == "there is no description of the pipeline beside the state"
    else:
        assert shown["sources"][0]["roots"] == []
    assert output("state", "show", states)


def test_how_far_a_run_is_is_not_known_where_the_order_is_not(tmp_path: Path) -> None:
    save(tmp_path, sk.from_sequence(range(90)).select(range(60)).shuffle(seed=1), 2)
    (shown,) = documents("state", "show", tmp_path)
    assert shown["records"] is None
    assert "the order of shuffle > select cannot be told" in shown["unknown"]
    save(tmp_path / "endless", sk.mix([sk.from_sequence("ab")], seed=0, stop="never"), 2, steps=3)
    (shown,) = documents("state", "show", tmp_path / "endless")
    assert (shown["position"], shown["unknown"], shown["began"]) == (20, "the data has no end", 0)


def test_the_same_states_do_not_differ(states: Path) -> None:
    assert output("state", "diff", states, states) == b""
    assert documents("state", "diff", states, states)[0]["same"] is True


def test_what_differs_is_told_with_exit_code_3(states: Path, corpus: Corpus) -> None:
    save(states.parent / "other", sk.open(corpus.folder).shuffle(seed=2), 3)
    done = run("state", "diff", states, states.parent / "other")
    assert (done.returncode, done.stderr) == (3, b"")
    assert done.stdout.decode().splitlines() == [
        "shuffle: seed was 1, is 2",
        "step was 9, is 3",
        "position was 90, is 30",
    ]
    told = json.loads(run("state", "diff", states, states.parent / "other", "--json").stdout)
    assert (told["same"], told["same_pipeline"], len(told["differences"])) == (False, False, 3)


def test_states_of_one_pipeline_differ_by_place(states: Path) -> None:
    one, two = sorted(states.glob("state-*.json"))
    told = json.loads(run("state", "diff", one, two, "--json").stdout)
    assert (told["same"], told["same_pipeline"]) == (False, True)
    assert told["differences"] == ["step was 2, is 9", "position was 20, is 90"]


def test_descriptions_are_compared_alone_and_all_of_the_difference_is_told(tmp_path: Path) -> None:
    parts = [[sk.from_sequence(range(9)).shuffle(seed=seed + of) for of in range(20)] for seed in (0, 100)]
    for name, some in zip("ab", parts, strict=True):
        save(tmp_path / name, sk.concat(some), 1)
    (one,), (two,) = (list((tmp_path / name).glob("pipeline-*.json")) for name in "ab")
    done = run("state", "diff", one, two)
    assert (done.returncode, len(done.stdout.splitlines())) == (3, 20)


def test_without_a_description_the_fingerprints_are_told(states: Path, corpus: Corpus) -> None:
    save(states.parent / "other", sk.open(corpus.folder).shuffle(seed=2), 9)
    for path in (states.parent / "other").glob("pipeline-*.json"):
        path.unlink()
    done = run("state", "diff", states, states.parent / "other")
    assert done.returncode == 3
    assert done.stdout.startswith(b"fingerprint was xxh3:")
    assert b"there is no description to say in what" in done.stdout


@pytest.mark.parametrize("command", [["show"], ["diff", "nowhere"]])
def test_a_state_that_is_not_there_exits_with_4(tmp_path: Path, command: list[str]) -> None:
    assert run("state", *command, tmp_path / "nowhere").returncode == 4
    assert run("state", *command, tmp_path).returncode == 4


def test_each_source_is_told_with_its_epoch_and_its_next_row(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        for part in (1, 2):
            lines = "".join(f"{row}\n" for row in range(20))
            (tmp_path / name / f"{part}.txt").write_text(lines, encoding="utf-8")
    parts = {name: sk.open(tmp_path / name) for name in "ab"}
    save(tmp_path / "plain", sk.mix(parts, weights=[3, 1], seed=1, stop="never"), 6, steps=9)
    (shown,) = documents("state", "show", tmp_path / "plain")
    assert [(source["source"], source["epoch"], source["of"]) for source in shown["progress"]] == [
        ("a", 1, 40),
        ("b", 0, 40),
    ]
    a, b = shown["progress"]
    assert a["rows"] + 40 + b["rows"] == 60
    assert (a["shard"], a["row"], a["percent"]) == ("1.txt", a["rows"], 2.5 * a["rows"])
    told = output("state", "show", tmp_path / "plain").decode()
    progress = f"epoch 1, {a['percent']:.1f} % ({a['rows']} of 40 rows); next is row {a['row']} of 1.txt"
    assert f"source a     {progress}; spec {tmp_path / 'a'}\n" in told


def test_rows_that_wait_in_a_stream_are_not_counted(tmp_path: Path) -> None:
    stream = sk.from_sequence(range(90), version=1).stream(epochs=1).shuffle(buffer=7, seed=1)
    save(tmp_path, stream, 2)
    (shown,) = documents("state", "show", tmp_path)
    (source,) = shown["progress"]
    assert (source["epoch"], source["rows"], source["of"]) == (0, 20, 90)
    assert source["shard"] == "<builtins.range 1>"


def test_the_share_of_one_rank_does_not_say_how_far_sources_are(tmp_path: Path) -> None:
    stream = sk.from_sequence(range(90), version=1).stream(lanes=4)
    for rank in range(2):
        loader = sk.Loader(stream, global_batch_size=8, rank=rank, world_size=2, collate=list, prefetch=0)
        next(iter(loader))
        path = sk.save_state(tmp_path, loader)
    (whole,), (share,) = documents("state", "show", tmp_path), documents("state", "show", path)
    assert [source["rows"] for source in whole["progress"]] == [8]
    assert share["progress"] is None
    assert "needs all lanes of the state, and it lacks lane 0 of 4" in share["progress_unknown"]


def test_why_it_is_not_known_how_far_sources_are(tmp_path: Path) -> None:
    save(tmp_path, sk.from_sequence(range(30)).stream(epochs=1).repeat(), 2, steps=3)
    (shown,) = documents("state", "show", tmp_path)
    assert shown["progress"] is None
    assert "'repeat' begins its input anew" in shown["progress_unknown"]
    assert b"source" not in output("state", "show", tmp_path).partition(b"\n\n")[0]


def test_a_shuffle_above_a_mixture_is_one_source(tmp_path: Path) -> None:
    mixed = sk.mix([sk.from_sequence(range(30)), sk.from_sequence(range(30))], seed=1)
    loader = sk.Loader(mixed.shuffle(seed=1), batch_size=10, collate=list, prefetch=0)
    loader.skip_batches(2)
    sk.save_state(tmp_path, loader)
    (shown,) = documents("state", "show", tmp_path)
    (source,) = shown["progress"]
    assert (source["rows"], source["of"]) == (20, len(mixed))
    assert {key: source[key] for key in loader.sources()[0]} == loader.sources()[0]
