"""``sk.open("kaldi:DIR")``: each utterance of a data directory is a record of all of its tables."""

from __future__ import annotations

import gzip
import itertools
import os
import pickle
import random
import wave
from functools import partial
from pathlib import Path
from typing import Any

import kaldi_native_io as kn
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.command import run
from tests.induction import check_every_cut
from tests.kaldi.holder_cases import dumped
from tests.thrift import some

import seekable as sk
from seekable import kaldi
from seekable.formats.kaldi.directory import validation as validated
from seekable.formats.kaldi.directory.utterances import SortedTable
from seekable.formats.table import format_named
from seekable.index.opening import open_files
from seekable.kaldi import find_holder
from seekable.storage.listing import FoundFiles

RATE = 8000
SAMPLES = {
    name: np.random.default_rng(seed).integers(-9999, 9999, (2 * RATE, channels), dtype=np.int16)
    for seed, (name, channels) in enumerate({"r1": 1, "r2": 2, "r3": 1, "r4": 1}.items())
}
FEATURES = {
    key: np.random.default_rng(seed).standard_normal((7, 3)).astype(np.float32)
    for seed, key in enumerate(("a-1", "a-2", "b-1", "b-2", "c-1"))
}
TABLES = {
    "segments": "a-1 r1 0.1 0.6\na-2 r1 0.6 -1\nb-1 r2 0.25 0.75 1\nb-2 r3 1 2.3\nc-1 r4 0 1\n",
    "text": "a-1 good day\na-2\tcaf\u00e9  au lait \nb-1 bye\nb-2 bye bye\nc-1 so long\n",
    "utt2spk": "a-1 a\na-2 a\nb-1 b\nb-2 b\nc-1 c\n",
    "spk2utt": "a a-1 a-2\nb b-1 b-2\nc c-1\n",
    "spk2gender": "a f\nb m\nc f\n",
    "utt2lang": "a-1 en\na-2 fr\nb-1 en\nb-2 en\nc-1 en\n",
    "utt2dur": "a-1 0.5\na-2 1.4\nb-1 0.5\nb-2 1\nc-1 1\n",
    "utt2num_frames": "a-1 48\na-2 138\nb-1 48\nb-2 98\nc-1 98\n",
    "utt2warp": "a-1 0.9\na-2 1\nb-1 1\nb-2 1\nc-1 1.1\n",
    "utt2uniq": "a-1 a-1\na-2 a-1\nb-1 b-1\nb-2 b-1\nc-1 c-1\n",
    "spk2warp": "a 0.9\nb 1\nc 1.2\n",
}
COLUMNS = (
    *("key", "audio", "features", "text", "speaker", "gender", "language", "duration", "num_frames"),
    *("recording", "start", "end", "vad", "cmvn", "warp", "speaker_warp", "uniq"),
)


def write_wave(path: Path, samples: np.ndarray[Any, Any]) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())


def write_directory(folder: Path) -> Path:
    """Write a directory of five utterances, and each kind of line that wav.scp can have without commands."""
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / name).write_text(text)
    for name in ("r1", "r2"):
        write_wave(folder / f"{name}.wav", SAMPLES[name])
    held = {
        name: dumped(find_holder("wave"), kaldi.Wave(RATE, SAMPLES[name].T.astype(np.float32)))
        for name in ("r3", "r4")
    }
    (folder / "waves.ark").write_bytes(b"r3 " + held["r3"] + b"r4 " + held["r4"])
    (folder / "r4.wav.gz").write_bytes(gzip.compress(held["r4"]))
    (folder / "wav.scp").write_text(
        f"r1 {folder}/r1.wav\nr2 cat {folder}/r2.wav |\nr3 {folder}/waves.ark:3\n"
        f"r4 gunzip -c {folder}/r4.wav.gz |\n"
    )
    with kn.FloatMatrixWriter(f"ark,scp:{folder}/feats.ark,{folder}/feats.scp") as writer:
        for key, matrix in FEATURES.items():
            writer.write(key, matrix)
    with kn.FloatVectorWriter(f"ark,scp:{folder}/vad.ark,{folder}/vad.scp") as writer:
        for key in FEATURES:
            writer.write(key, np.ones(len(key), np.float32))
    with kn.DoubleMatrixWriter(f"ark,scp:{folder}/cmvn.ark,{folder}/cmvn.scp") as writer:
        for number, speaker in enumerate("abc"):
            writer.write(speaker, np.full((2, 4), number, np.float64))
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that no test changes."""
    return write_directory(tmp_path_factory.mktemp("data") / "train")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A directory that the test may change."""
    return write_directory(tmp_path / "train")


def test_a_record_has_what_each_table_says(shared: Path) -> None:
    assert kaldi.validate_directory(shared) == ()
    ds = sk.open(f"kaldi:{shared}")
    assert len(ds) == 5
    record = ds[1]
    assert tuple(record) == COLUMNS
    audio, features, vad, cmvn = (record.pop(name) for name in ("audio", "features", "vad", "cmvn"))
    assert record == {
        "key": "a-2",
        "text": "caf\u00e9  au lait",
        "speaker": "a",
        "gender": "f",
        "language": "fr",
        "duration": 1.4,
        "num_frames": 138,
        "recording": "r1",
        "start": 0.6,
        "end": -1.0,
        "warp": 1.0,
        "speaker_warp": 0.9,
        "uniq": "a-1",
    }
    assert (audio.rate, audio.data.dtype, audio.data.shape) == (RATE, np.float32, (1, 11200))
    with kn.RandomAccessFloatMatrixReader(f"scp:{shared}/feats.scp") as reader:
        np.testing.assert_array_equal(features, reader["a-2"])
    np.testing.assert_array_equal(vad, np.ones(3))
    np.testing.assert_array_equal(cmvn, np.zeros((2, 4)))
    assert (vad.dtype, cmvn.dtype) == (np.float32, np.float64)


@pytest.mark.parametrize("at_once", [True, False])
def test_audio_is_cut_of_each_kind_of_recording(shared: Path, at_once: bool) -> None:  # noqa: FBT001
    ds = sk.open(f"kaldi:{shared}")
    records = ds[list(range(5))] if at_once else [ds[row] for row in range(5)]
    cuts = {"r1": [(800, 4800, 0), (4800, 16000, 0)], "r2": [(2000, 6000, 1)]}
    expected = [(name, *cut) for name, some in cuts.items() for cut in some]
    expected += [("r3", 8000, 16000, 0), ("r4", 0, 8000, 0)]
    for record, (name, start, stop, channel) in zip(records, expected, strict=True):
        np.testing.assert_array_equal(record["audio"].data[0], SAMPLES[name][start:stop, channel])
        assert len(record["audio"].data) == 1


def test_without_segments_the_recordings_are_the_utterances(own: Path) -> None:
    for path in own.iterdir():
        if path.name not in {"r1.wav", "r2.wav"}:
            path.unlink()
    (own / "wav.scp").write_text(f"u1 {own}/r1.wav\nu2 {own}/r2.wav\n")
    ds = sk.open(f"kaldi:{own}")
    assert [tuple(record) for record in ds] == [("key", "audio")] * 2
    np.testing.assert_array_equal(ds.key("u2")["audio"].data, SAMPLES["r2"].T)
    (own / "text").write_text("u1 good\nu2 day\n")
    assert sk.open(f"kaldi:{own}").select_columns(["text"])[1] == {"text": "day"}


@pytest.mark.parametrize(
    ("main", "columns"),
    [("feats.scp", ("key", "features")), ("text", ("key", "text")), ("utt2spk", ("key", "speaker"))],
)
def test_other_tables_can_list_the_utterances(own: Path, main: str, columns: tuple[str, ...]) -> None:
    for path in own.iterdir():
        if path.name != main and path.suffix != ".ark":
            path.unlink()
    ds = sk.open(f"kaldi:{own}")
    assert (len(ds), tuple(ds[4]), ds[4]["key"], ds.locate(4).path) == (5, columns, "c-1", str(own / main))


def test_only_what_is_asked_for_is_read(own: Path) -> None:
    for path in own.glob("*.[aw]*"):
        if path.suffix in {".ark", ".wav"}:
            path.unlink()
    ds = sk.open(f"kaldi:{own}")
    text = [{"text": "bye"}, {"text": "bye bye"}]
    assert list(ds.select_columns(["text"])[2:4]) == text
    assert list(ds.drop_columns([name for name in COLUMNS if name != "text"])[2:4]) == text
    named = sk.open(f"kaldi:{own}", columns=["speaker", "key"])
    assert list(named[3].items()) == [("speaker", "b"), ("key", "b-2")]
    assert named.fingerprint != ds.fingerprint
    assert sk.open(f"kaldi:{own}", columns=[])[3] == {}
    assert ds.select_columns(["key", "text"]).key("b-1") == {"key": "b-1", "text": "bye"}
    with pytest.raises(sk.CorruptRecord, match=r"there is no file .*r1\.wav"):
        ds[0]
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"has no column 'words'; its tables make the columns 'key', 'audio'"
    ):
        sk.open(f"kaldi:{own}", columns=["words"])


def test_commands_run_only_with_leave_and_once_for_segments_that_follow(own: Path) -> None:
    line = f"r1 echo x >> {own}/runs; cat {own}/r1.wav |"
    script = (own / "wav.scp").read_text()
    (own / "wav.scp").write_text(script.replace(f"r1 {own}/r1.wav", line))
    with pytest.raises(sk.CorruptRecord, match="run only with pipes='allow'") as caught:
        sk.open(f"kaldi:{own}")[0]
    assert isinstance(caught.value.cause, sk.errors.PipeRefused)
    ds = sk.open(f"kaldi:{own}", format=sk.formats.Kaldi(pipes="allow"))
    for record, (start, stop) in zip(ds[[0, 1]], [(800, 4800), (4800, 16000)], strict=True):
        np.testing.assert_array_equal(record["audio"].data, SAMPLES["r1"][start:stop].T)
    assert (own / "runs").read_text() == "x\n"
    record["audio"].data[:] = 0
    np.testing.assert_array_equal(ds[1]["audio"].data, SAMPLES["r1"][4800:].T)
    (own / "wav.scp").write_text(script.replace(f"r1 {own}/r1.wav", f"r1 cat {own}/r1.wav; exit 3 |"))
    with pytest.raises(sk.CorruptRecord, match="failed with exit code 3"):
        sk.open(f"kaldi:{own}", format=sk.formats.Kaldi(pipes="allow"))[0]


def test_a_compressed_file_is_read_once_for_segments_that_follow(own: Path) -> None:
    (own / "r1.wav.gz").write_bytes(gzip.compress((own / "r1.wav").read_bytes()))
    script = (own / "wav.scp").read_text()
    (own / "wav.scp").write_text(script.replace("r1.wav", "r1.wav.gz"))
    ds = sk.open(f"kaldi:{own}", columns=["audio"])
    np.testing.assert_array_equal(ds[0]["audio"].data, SAMPLES["r1"][800:4800].T)
    (own / "r1.wav.gz").unlink()
    np.testing.assert_array_equal(ds[1]["audio"].data, SAMPLES["r1"][4800:].T)


def test_paths_begin_at_the_current_folder_or_at_the_directory(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own / "wav.scp").write_text("r1 r1.wav\nr2 train/r2.wav\nr3 waves.ark:3\nr4 r4.wav.gz\n")
    monkeypatch.chdir(own.parent)
    ds = sk.open("kaldi:train")
    assert [record["audio"].data.shape[1] for record in ds] == [4000, 11200, 4000, 8000, 8000]


def test_an_archive_that_was_written_again_is_found_out(own: Path) -> None:
    lines = (own / "feats.scp").read_text().splitlines()
    first, second = (line.split()[1] for line in lines[:2])
    (own / "feats.scp").write_text("\n".join([f"a-1 {second}", f"a-2 {first}", *lines[2:]]) + "\n")
    os.utime(own / "feats.ark", (4e9, 4e9))
    ds = sk.open(f"kaldi:{own}", columns=["features"])
    with pytest.raises(sk.CorruptRecord, match="the archive is newer than the script: it was written again"):
        ds[0]
    np.testing.assert_array_equal(ds[2]["features"], FEATURES["b-1"])


def test_invalid_directories_are_refused_with_file_and_line(own: Path) -> None:
    (own / "text").write_text(TABLES["text"].replace("b-1 bye\n", ""))
    with pytest.raises(
        sk.errors.CorruptTable, match=r"utt2spk', line 3: text has no line for the utterance 'b-1'"
    ):
        sk.open(f"kaldi:{own}")
    (own / "text").write_text("".join(f"x{number:02} <s>\n" for number in range(30)))
    with pytest.raises(sk.errors.CorruptTable, match=r"\n  and \d+ more$"):
        sk.open(f"kaldi:{own}")
    (own / "text").write_text(TABLES["text"])
    assert len(sk.open(f"kaldi:{own}")) == 5


def test_a_directory_is_validated_once_for_each_content(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(path: str) -> tuple[kaldi.Problem, ...]:
        calls.append(path)
        return kaldi.validate_directory(path)

    monkeypatch.setattr(validated, "validate_directory", counted)
    for _ in range(3):
        sk.open(f"kaldi:{own}")
    assert len(calls) == 1
    (own / "reco2dur").write_text("r1 2\nr2 2\nr3 2\nr4 2\n")
    for _ in range(2):
        sk.open(f"kaldi:{own}")
    assert len(calls) == 2
    (own / ".seekable" / validated.REMEMBERED).write_text("{}")
    sk.open(f"kaldi:{own}")
    assert len(calls) == 3


def test_the_fingerprint_has_every_table_that_records_are_made_of(own: Path) -> None:
    first = sk.open(f"kaldi:{own}").fingerprint
    seen = {first}
    for name in sorted({*TABLES, "wav.scp", "feats.scp", "vad.scp", "cmvn.scp"}):
        before = (own / name).read_text()
        (own / name).write_text(before.replace(" ", "  "))
        seen.add(sk.open(f"kaldi:{own}").fingerprint)
        (own / name).write_text(before)
    assert len(seen) == len(TABLES) + 4  # spk2utt makes no column, and the tables as they were count once.
    assert sk.open(f"kaldi:{own}").fingerprint == first


def test_a_table_that_changes_while_it_is_open_is_refused(own: Path) -> None:
    ds = sk.open(f"kaldi:{own}", errors=lambda _: sk.HOLE, columns=["key", "text"])
    assert ds[0] == {"key": "a-1", "text": "good day"}
    (own / "text").write_text(TABLES["text"].replace("good", "bad"))
    for rows in (0, [0, 1]):
        with pytest.raises(sk.IndexStale, match="text"):
            ds[rows]
    assert sk.open(f"kaldi:{own}", columns=["text"])[0] == {"text": "bad day"}


def test_what_cannot_be_read_is_replaced_by_errors(own: Path) -> None:
    (own / "r1.wav").unlink()
    (own / "segments").write_text(TABLES["segments"].replace("b-2 r3 1 2.3", "b-2 r3 1 2.6"))
    found: list[sk.CorruptRecord] = []

    def skip(error: sk.CorruptRecord) -> Any:
        found.append(error)
        return sk.HOLE

    records = sk.open(f"kaldi:{own}", errors=skip)[:][list(range(5))]
    assert [record is sk.HOLE for record in records] == [True, True, False, True, False]
    assert [(error.row, Path(error.path).name) for error in found] == [
        (0, "segments"),
        (1, "segments"),
        (3, "segments"),
    ]
    assert "lies beyond the recording 'r3', which lasts 2.000 s" in str(found[2])


def test_everything_of_a_dataset_works(shared: Path) -> None:
    ds = sk.open(f"kaldi:{shared}", columns=["key", "text", "duration", "features"])
    assert ds.key("b-1")["text"] == "bye"
    with pytest.raises(sk.errors.KeyNotFound):
        ds.key("b-9")
    assert sorted(record["key"] for record in ds.shuffle(seed=1)) == list(FEATURES)
    assert ds.find(str(shared / "segments"), 3) == [3]
    assert pickle.loads(pickle.dumps(ds))[4]["text"] == "so long"
    other = ds.rename({"text": "words"}).select_columns(["key", "words"])
    assert sk.join(ds.select_columns(["key"]), other, on="key")[2] == {"key": "b-1", "words": "bye"}
    short = ds.filter(lambda record: record["duration"] < 1)
    mixed = sk.mix([ds, short], weights=[1, 1], seed=3, stop="all")
    assert {record["key"] for record in mixed} == set(FEATURES)
    assert ds.filter(lambda record: record["key"] > "b")[0]["key"] == "b-1"
    assert repr(ds) == f"<Dataset, 5 records: open('kaldi:{shared}')>"


def loader_of(folder: Path, **options: Any) -> sk.Loader:
    ds = sk.open(f"kaldi:{folder}", columns=["key", "audio", "speaker"]).map(shapes)
    return sk.Loader(ds.shuffle(seed=5), batch_size=2, epochs=2, **options)


def shapes(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["key"], record["speaker"], record["audio"].data.shape[1], float(record["audio"].data.sum())


def test_every_cut_resumes_exactly(shared: Path) -> None:
    check_every_cut(partial(loader_of, shared))


@pytest.mark.exhaustive
def test_workers_deliver_the_same_batches(shared: Path) -> None:
    assert repr(list(loader_of(shared, workers=2))) == repr(list(loader_of(shared)))


def test_a_pipeline_file_has_all_tables(own: Path, tmp_path: Path) -> None:
    ds = sk.open(f"kaldi:{own}").shuffle(seed=2)
    ds.save(tmp_path / "pipeline.json")
    loaded = sk.load_pipeline(tmp_path / "pipeline.json")
    assert (loaded.fingerprint, loaded[0]["text"]) == (ds.fingerprint, ds[0]["text"])
    expected = ds.select_columns(["key", "text"])[0]
    own.rename(tmp_path / "moved")
    moved = sk.load_pipeline(tmp_path / "pipeline.json", root=tmp_path / "moved")
    assert moved.select_columns(["key", "text"])[0] == expected
    (tmp_path / "moved/utt2lang").write_text(TABLES["utt2lang"].replace("fr", "de"))
    with pytest.raises(sk.StateMismatch, match="utt2lang"):
        sk.load_pipeline(tmp_path / "pipeline.json", root=tmp_path / "moved")


def test_a_pipeline_file_turns_no_pipes_on(own: Path, tmp_path: Path) -> None:
    script = (own / "wav.scp").read_text()
    (own / "wav.scp").write_text(
        script.replace(f"r1 {own}/r1.wav", f"r1 touch {own}/ran; cat {own}/r1.wav |")
    )
    sk.open(f"kaldi:{own}", format=sk.formats.Kaldi(pipes="allow")).save(tmp_path / "pipeline.json")
    with pytest.raises(sk.CorruptRecord, match="pipes='allow'"):
        sk.load_pipeline(tmp_path / "pipeline.json")[0]
    assert not (own / "ran").exists()


def test_commands_take_the_spec(shared: Path) -> None:
    assert b"records       5" in run("info", f"kaldi:{shared}").stdout
    head = run("head", f"kaldi:{shared}", "-n", "1").stdout
    assert head.startswith(b'{"key":"a-1","audio":{"rate":8000,"data":[[')
    assert b"good: " in run("verify", f"kaldi:{shared}", "--decode").stdout


def test_wrong_arguments_are_refused(shared: Path, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"decode": "text"}, "decode= is for lines"),
        ({"format": sk.formats.Tables(strict=True)}, "Tables.* is for parquet, arrow, and .* is kaldi-dir"),
        ({"format": sk.formats.Kaldi(holder="matrix")}, "holder= is for Kaldi's tables"),
        ({"columns": ["text", "text"]}, "each column once"),
        ({"format": "jsonl"}, "leave format='jsonl' out"),
    ]
    for options, message in wrong:
        with pytest.raises(sk.errors.InvalidArgument, match=message):
            sk.open(f"kaldi:{shared}", **options)
    with pytest.raises(sk.errors.InvalidArgument, match="kaldi:DIR"):
        sk.open("kaldi:")
    with pytest.raises(sk.errors.InvalidArgument, match="is opened alone"):
        sk.open([f"kaldi:{shared}"])
    with pytest.raises(sk.DataNotFound, match="there is no data directory"):
        sk.open(f"kaldi:{tmp_path}/none")
    with pytest.raises(sk.DataNotFound, match="it has none of the files segments"):
        sk.open(f"kaldi:{tmp_path}")
    with pytest.raises(sk.errors.UnsupportedFormat, match=f"as sk.open\\('kaldi:{shared}'\\)"):
        sk.open(shared)


def test_windows_line_ends_are_read(own: Path) -> None:
    before = sk.open(f"kaldi:{own}")
    lines = [(*shapes(record), record["text"], record["end"]) for record in before]
    for name in (*TABLES, "wav.scp", "feats.scp", "vad.scp", "cmvn.scp"):
        (own / name).write_bytes((own / name).read_bytes().replace(b"\n", b"\r\n"))
    assert [(*shapes(record), record["text"], record["end"]) for record in sk.open(f"kaldi:{own}")] == lines


def sorted_table(folder: Path, lines: list[bytes]) -> SortedTable:
    (folder / "text").write_bytes(b"".join(line + b"\n" for line in lines))
    found = [FoundFiles(str(folder), ("text",))]
    return SortedTable(open_files(found, format_named("kaldi-directory").finder))


KEYS = st.text("ab\u00e9~!", min_size=1, max_size=4).map(str.encode)


@settings(max_examples=some(30, of=3))
@given(data=st.data(), keys=st.sets(KEYS, min_size=1, max_size=40))
def test_a_line_is_found_by_its_key(
    data: st.DataObject, keys: set[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    ordered = sorted(keys)
    table = sorted_table(tmp_path_factory.mktemp("table"), [key + b" of " + key for key in ordered])
    for key in data.draw(st.lists(st.sampled_from(ordered), max_size=20)):
        row = table.find(key, data.draw(st.integers(-1, 50)))
        assert (row, table.rest(row, key)) == (ordered.index(key), b"of " + key)
    other = data.draw(KEYS.filter(lambda key: key not in keys))
    with pytest.raises(sk.errors.CorruptTable, match="has no line for"):
        table.find(other)


def test_a_thousand_utterances_are_found_by_row_and_key(tmp_path: Path) -> None:
    keys = sorted(f"s{number % 7}-{number:04}" for number in range(1000))
    (tmp_path / "utt2spk").write_text("".join(f"{key} {key[:2]}\n" for key in keys))
    (tmp_path / "text").write_text("".join(f"{key} words of {key}\n" for key in keys))
    ds = sk.open(f"kaldi:{tmp_path}")
    rows = random.Random(0).sample(range(1000), 100)
    assert [record["text"] for record in ds[rows]] == [f"words of {keys[row]}" for row in rows]
    assert [ds.key(keys[row])["speaker"] for row in rows] == [keys[row][:2] for row in rows]


def keys_of(loader: sk.Loader, batches: int | None = None) -> list[str]:
    return [key for batch in itertools.islice(loader, batches) for key in batch["key"]]


def test_a_run_goes_on_by_rows_after_transcripts_were_mended(own: Path) -> None:
    def loader() -> sk.Loader:
        ds = sk.open(f"kaldi:{own}", columns=["key", "text"])
        return sk.Loader(ds.shuffle(seed=4), batch_size=1)

    first = loader()
    begun = keys_of(first, 2)
    state = first.state_dict()
    (own / "text").write_text(TABLES["text"].replace("bye bye", "good bye"))
    with pytest.raises(sk.StateMismatch, match=r"tables was .*'text'"):
        loader().load_state_dict(state)
    later = loader()
    later.load_state_dict(state, resume="rows")
    assert begun + keys_of(later) == keys_of(loader())
