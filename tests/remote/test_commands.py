"""Commands over addresses: those of a file system of this process, and of a server of S3."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import fsspec  # type: ignore[import-untyped]
import pytest
from tests.cli.command import documents, environment, output, run
from tests.cli.warm import SEEKABLE
from tests.remote.proxy import Fault

import seekable as sk
from seekable.remote.fetching.fetcher import fetcher

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.remote.proxy import Front
    from tests.remote.servers.bucket import Bucket
    from tests.remote.servers.nginx import Nginx

GROUPS = ("store", "data")
ROOT = "memory://commands"
LINES = [json.dumps({"id": row, "text": f"text {row}", "ids": [1, 2, row]}) for row in range(120)]
FILES = {
    f"corpus/part-{n}.jsonl": "".join(f"{line}\n" for line in LINES[40 * n : 40 * n + 40]).encode()
    for n in range(3)
}
CORPUS = f"{ROOT}/corpus/*.jsonl"


@pytest.fixture(scope="module", autouse=True)
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A corpus, states and a pipeline in a file system in memory."""
    files = fsspec.filesystem("memory")
    files.pipe({f"/commands/{key}": content for key, content in FILES.items()})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        shuffled = sk.open(CORPUS).shuffle(seed=1)
        shuffled.save(f"{ROOT}/pipeline.json")
        loader = sk.Loader(shuffled, batch_size=4)
        for _ in range(2):
            next(iter(loader))
            sk.save_state(f"{ROOT}/states-{loader.step}", loader)
        yield
    files.rm("/commands", recursive=True)


def test_data_is_looked_at() -> None:
    (found,) = documents("info", CORPUS)
    assert (found["records"], found["index"]["was_up_to_date"]) == (120, True)
    assert (found["stores"]["folders"], found["stores"]["published"]) == ([f"{ROOT}/corpus"], [])
    assert output("head", CORPUS, "-n", "2").decode().split("\n")[:2] == LINES[:2]
    assert output("get", CORPUS, "5", "-1").decode().splitlines() == [LINES[5], LINES[-1]]
    assert len(output("sample", CORPUS, "-n", "3").splitlines()) == 3
    (good,) = documents("verify", "--deep", "--decode", CORPUS)
    assert (good["good"], good["records"]) == (True, 120)
    assert documents("info", CORPUS, "--key", "ids", "-L", "8")[0]["packing"]["concat"]["samples"] == 45
    simulated = documents("simulate", CORPUS, "--shuffle", "-G", "8", "--records-per-second", "100")[0]
    assert simulated["bytes"] == sum(map(len, FILES.values()))


def test_states_and_pipelines_are_looked_at() -> None:
    states = f"{ROOT}/states-1"
    planned = documents("plan", states, "--batch-size", "4")[0]["records"]
    assert [record["position"] for record in planned] == [4, 5, 6, 7]
    assert planned[0]["location"]["path"].startswith(f"{ROOT}/corpus/part-")
    file = documents("plan", f"{ROOT}/pipeline.json", "--batch-size", "4", "--state", states)[0]
    assert file["records"] == planned
    assert 1 <= file["requests"]["count"] <= 3
    assert file["requests"]["record_bytes"] <= file["requests"]["bytes"] <= sum(map(len, FILES.values()))
    assert "to stores" in output("plan", f"{ROOT}/pipeline.json", "--batch-size", "4").decode()
    assert documents("state", "show", states)[0]["step"] == 1
    done = run("state", "diff", states, f"{ROOT}/states-2", "--json")
    assert (done.returncode, json.loads(done.stdout)["same_pipeline"]) == (3, True)
    assert documents("info", f"{ROOT}/pipeline.json")[0]["records"] == 120


def test_files_are_written(tmp_path: Path) -> None:
    assert documents("export", CORPUS, f"{ROOT}/out", "--as", "jsonl", "--quiet")[0]["rows"] == 120
    assert output("get", f"{ROOT}/out", "7").decode().strip() == json.dumps(
        json.loads(LINES[7]), separators=(",", ":")
    )
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text(_tokenizer())
    written = documents("tokenize", CORPUS, "--to", f"{ROOT}/tokens", "--tokenizer", tokenizer, "--quiet")[0]
    assert (written["documents"], written["bytes"] > 2 * written["tokens"]) == (120, True)
    assert output("get", f"{ROOT}/tokens", "3", "--decode").decode().strip() == "text 3"


def _tokenizer() -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: id_ for id_, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    found: str = tokenizer.to_str()
    return found


def test_tables_of_kaldi_are_read() -> None:
    fsspec.filesystem("memory").pipe("/commands/a.txt.ark", b"u1 [ 1 2 ]\nu2 [ 3 ]\n")
    table = f"ark,t:{ROOT}/a.txt.ark"
    assert output("kaldi", "shapes", table, "--holder", "vector") == b"u1 2\nu2 1\n"
    done = run("kaldi", "copy", table, "ark,t:-", "--holder", "vector")
    assert (done.returncode, done.stdout) == (0, b"u1  [ 1 2 ]\nu2  [ 3 ]\n")
    assert documents("kaldi", "validate", table, "--holder", "vector")[0]["good"]


@pytest.mark.parametrize("scheme", ["", "kaldi:"])
def test_a_data_directory_of_kaldi_is_validated(scheme: str) -> None:
    tables = {"text": b"s-1 a\n", "wav.scp": b"s-1 x.wav\n", "utt2spk": b"s-1 s\n", "spk2utt": b"s s-1\n"}
    fsspec.filesystem("memory").pipe({f"/commands/data/{name}": table for name, table in tables.items()})
    assert documents("kaldi", "validate", f"{scheme}{ROOT}/data")[0]["good"]


@pytest.mark.exhaustive
def test_an_interrupt_ends_a_command_that_waits_for_a_store(
    nginx: Nginx, front: Front, tmp_path: Path
) -> None:
    bucket = nginx.bucket()
    bucket.upload(FILES)
    address = f"{bucket.behind(front).url}/corpus/part-0.jsonl"
    more = environment({"XDG_CACHE_HOME": str(tmp_path), "SEEKABLE_REMOTE_DIR": str(tmp_path / "remote")})
    front.always(Fault(hang=True))
    with subprocess.Popen([SEEKABLE, "head", address], env=more, stderr=subprocess.PIPE) as process:
        front.wait(1)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=5)
    assert process.returncode == 130
    assert told.startswith(b"seekable: interrupted; what was indexed so far is kept")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["head", f"{ROOT}/none/*.jsonl"], 4, "nothing matches"),
        (["get", CORPUS, "120"], 4, "120"),
        (["state", "show", f"{ROOT}/none"], 4, "there is no"),
        (["plan", f"{ROOT}/none", "--batch-size", "4"], 4, "there is no"),
        (["recompress", f"{ROOT}/corpus/part-0.jsonl"], 2, "seekable export"),
        (["index", "--for", "lhotse", f"{ROOT}/corpus"], 2, "name a copy"),
        (["head", CORPUS, "--storage", "region"], 2, "NAME=VALUE"),
        (["head", "s3://b/a.jsonl", "--storage", "regio=x"], 2, "did you mean 'region'"),
        (["head", CORPUS, "--storage", "a=1", "--storage", "a=2"], 2, "twice"),
    ],
    ids=lambda value: "-".join(value[:2])[:16] if isinstance(value, list) else None,
)
def test_errors_and_exit_codes_are_those_of_local_data(command: list[str], code: int, said: str) -> None:
    done = run(*command)
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr.decode()
    as_json = run(*command, "--json")
    assert json.loads(as_json.stderr)["error"]["exit_code"] == code


def options(bucket: Bucket) -> list[str]:
    """Return the options of a bucket on the command line."""
    return [text for name, value in bucket.options.items() for text in ("--storage", f"{name}={value}")]


def test_options_reach_the_store_of_each_address(bucket: Bucket, tmp_path: Path) -> None:
    bucket.upload(FILES)
    corpus, stores = f"{bucket.url}/corpus", options(bucket)
    more: dict[str, Any] = {"XDG_CACHE_HOME": str(tmp_path), "AWS_ACCESS_KEY_ID": "wrong"}
    assert run("index", corpus, *stores, more=more).returncode == 0
    done = run("export", corpus, f"{bucket.url}/copy", "--as", "jsonl", *stores, more=more)
    assert (done.returncode, done.stderr) == (0, b"")
    assert run("get", f"{bucket.url}/copy", "0", *stores, more=more).returncode == 0


def test_a_published_index_and_the_bytes_on_disk_are_shown(bucket: Bucket, tmp_path: Path) -> None:
    bucket.upload(FILES)
    corpus, more = f"{bucket.url}/corpus", {"XDG_CACHE_HOME": str(tmp_path)}
    assert run("index", "--publish", corpus, *options(bucket), more=more).returncode == 0
    assert run("get", corpus, "0", *options(bucket), more=more).returncode == 0
    fetcher().close()  # Bytes are written to disk beside their reader, and all of them at the end.
    found = json.loads(run("info", corpus, "--json", *options(bucket), more=more).stdout)["stores"]
    assert found["published"] == [f"{corpus}/.seekable"]
    assert found["kept_bytes"] == len(FILES["corpus/part-0.jsonl"])
    shown = run("info", corpus, *options(bucket), more=more).stdout.decode()
    assert f"published index  {corpus}/.seekable\n" in shown


def test_options_without_an_address_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    done = run("head", tmp_path / "a.txt", "--storage", "region=x")
    assert (done.returncode, done.stdout) == (0, b"one\n")
    assert b"--storage has no effect" in done.stderr


def test_without_refresh_the_kept_list_is_taken(bucket: Bucket, tmp_path: Path) -> None:
    bucket.upload(FILES)
    corpus, more = f"{bucket.url}/corpus", {"XDG_CACHE_HOME": str(tmp_path)}
    assert run("index", corpus, *options(bucket), more=more).returncode == 0
    bucket.upload({"corpus/part-3.jsonl": b"{}\n"})
    kept = run("info", corpus, "--storage", "refresh=false", "--json", *options(bucket), more=more)
    listed = run("info", corpus, "--json", *options(bucket), more=more)
    assert json.loads(kept.stdout)["stores"]["published"] is None
    assert [json.loads(done.stdout)["records"] for done in (kept, listed)] == [120, 121]


def test_a_doctor_looks_at_a_store(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seekable.cli.data_checks._RANGES", 2)
    monkeypatch.setattr("seekable.cli.data_checks._LATENCY_TRIES", 2)
    bucket.upload({**FILES, "corpus/empty.jsonl": b""})
    more = {"XDG_CACHE_HOME": str(tmp_path)}
    done = run("doctor", f"{bucket.url}/corpus", "--json", *options(bucket), more=more)
    assert done.returncode == 0
    assert b'"test"' not in done.stdout  # no secret
    found = {
        one["name"]: one["value"] for one in json.loads(done.stdout)["findings"] if one["group"] in GROUPS
    }
    assert found["credentials"] == "access_key_id of the options"
    assert found["endpoint"].endswith("region us-east-1")
    assert found["listing"].startswith("4 object(s)")
    assert found["wrong etag"].startswith("refused (412)")
    assert found["published index"].startswith(f"none in {bucket.url}/corpus/.seekable")
    assert {"one range", "latency", "1 at once", "8 at once", "32 at once"} <= found.keys()


def test_a_doctor_says_which_objects_it_cannot_read(bucket: Bucket) -> None:
    done = run("doctor", f"{bucket.url}/none", "-q", *options(bucket))
    assert done.returncode == 1
    assert f"there is no object or folder '{bucket.url}/none'" in done.stdout.decode()


def test_a_doctor_looks_at_a_file_system_of_fsspec() -> None:
    found = {one["name"]: one for one in documents("doctor", CORPUS)[0]["findings"]}
    assert found["wrong etag"]["value"].startswith("not tried")
    assert found["32 at once"]["level"] == "ok"
