"""The page of a packed sequence: texts of tokens, borders, masked tokens, padding and rows of pieces."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.testclient import TestClient
from tests.tokens.trained import byte_encoding
from tests.viewer.viewed import record

import seekable as sk
from seekable.viewer.app import make_app
from seekable.viewer.opened import opened_of
from seekable.viewer.pages.sequence import packed_node_at, packed_sequence

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.viewer.opened import Opened


def packed(shown: Opened, position: int) -> dict[str, Any]:
    """Return the fact of a sequence."""
    found = packed_node_at(shown.pipeline("packed").loader.dataset._node, position)
    assert found is not None
    return packed_sequence(*found).document()


def test_the_twin_has_the_fact_and_the_csv_each_token_with_its_text(pages: TestClient, shown: Opened) -> None:
    fact = packed(shown, 3)
    found = pages.get("/p/packed/sequence/3?as=json").json()
    assert {key: found[key] for key in fact} == fact
    assert (found["step"], found["epoch"], found["source"]) == (0, 0, "data")
    lines = pages.get("/p/packed/sequence/3?as=csv").text.splitlines()
    assert lines[0] == "place,id,text,piece,document,token,in_loss"
    assert len(lines) == 1 + fact["length"]
    piece = fact["pieces"][0]
    texts = [line.split(",")[2] for line in lines[1 : 1 + piece["count"]]]
    source = piece["location"]["source"]
    number = 100 * int(source["path"][-7]) + source["row"]
    assert "".join(texts).split() == record(number)["text"].split()[piece["start"] : piece["stop"]]


def test_borders_masks_and_padding_are_shown_without_colour(pages: TestClient, shown: Opened) -> None:
    size = len(shown.pipeline("packed").loader.dataset)
    facts = {position: packed(shown, position) for position in range(size)}
    position = next(at for at, fact in facts.items() if fact["padding"] > 1 and len(fact["pieces"]) > 1)
    fact, page = facts[position], pages.get(f"/p/packed/sequence/{position}").text
    assert re.findall(r'<b class="border">(\d+)</b>', page) == [
        str(n + 1) for n in range(len(fact["pieces"]))
    ]
    assert f"padding: {fact['padding']} of id 0" in page
    masked = sum(mask == 0 for mask in fact["loss_mask"][: fact["used"]])
    assert page.count('class="masked"') == masked
    for piece in fact["pieces"]:
        file, row = piece["location"]["source"]["path"][-7], piece["location"]["source"]["row"]
        assert f'd/code/row/{100 * int(file) + row}"' in page


def test_a_part_of_a_long_sequence_is_shown_on_each_page(pages: TestClient) -> None:
    page = pages.get("/p/packed/sequence/3?at=40&n=10").text
    assert page.count("<span title=") == 10
    assert "at=50" in page
    assert pages.get("/p/packed/sequence/3?n=9000").status_code == 400


def test_steps_and_positions_lead_to_their_sequences(pages: TestClient) -> None:
    assert 'p/packed/sequence/5"' in pages.get("/p/packed/step/1").text
    assert "the committee" in pages.get("/p/packed/step/1").text
    assert 'href="../sequence/5"' in pages.get("/p/packed/position/5").text
    assert "sequence/" not in pages.get("/p/train/step/1").text
    assert "sequence/" not in pages.get("/p/train/position/5").text
    answer = pages.get("/p/train/sequence/5?as=json")
    assert (answer.status_code, "is not packed" in answer.json()["error"]) == (404, True)


def test_ids_are_shown_where_no_tokenizer_is_known_and_texts_by_the_one_that_is_named(
    tmp_path: Path, data: Path
) -> None:
    (tmp_path / "ids.jsonl").write_text(
        "".join(json.dumps({"tokens": [1, 2, 3, 4]}) + "\n" for _ in range(9))
    )
    loader = sk.Loader(sk.open(tmp_path / "ids.jsonl").pack(6, seed=1), batch_size=2)
    opened = opened_of({"ids": loader})
    page = TestClient(make_app(opened), base_url="http://127.0.0.1").get("/p/ids/sequence/1").text
    assert "Ids are shown without their text" in page
    assert ">4</span>" in page
    named = replace(opened, tokenizer=str(data / "tokenizer.json"))
    page = TestClient(make_app(named), base_url="http://127.0.0.1").get("/p/ids/sequence/1").text
    assert "> committee</span>" in page


def test_a_tokenizer_that_would_be_fetched_is_not_taken_unasked(tmp_path: Path) -> None:
    texts = sk.from_sequence([{"text": "abc"}, {"text": "de"}])
    sk.tokenize(texts, to=tmp_path / "ids", tokenizer=byte_encoding(), jobs=1)
    loader = sk.Loader(sk.open(tmp_path / "ids").pack(4, seed=1), batch_size=1)
    pages = TestClient(make_app(opened_of({"ids": loader})), base_url="http://127.0.0.1")
    assert pages.get("/p/ids/sequence/0?as=json").json()["tokenizer"] is None
    page = pages.get("/p/ids/sequence/0").text
    assert "which a package may fetch" in page
    assert "--tokenizer tiktoken:bytes" in page


def test_texts_of_tokens_are_text(tmp_path: Path) -> None:
    vocabulary = {"?": 0, "<script>alert(1)</script>": 1, "\u202e": 2}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"}
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "added_tokens": [], "model": model})
    )
    (tmp_path / "ids.jsonl").write_text(json.dumps({"tokens": [1, 2, 0, 1]}) + "\n")
    loader = sk.Loader(sk.open(tmp_path / "ids.jsonl").pack(4, seed=1), batch_size=1)
    opened = opened_of({"ids": loader}, tokenizer=str(tmp_path / "tokenizer.json"))
    page = TestClient(make_app(opened), base_url="http://127.0.0.1").get("/p/ids/sequence/0").text
    assert page.count("&lt;script&gt;alert(1)") == 2
    assert "\u202e" not in page
    assert "<script>alert" not in page


def test_a_finite_and_an_endless_pipeline_and_a_stream_that_pack(data: Path) -> None:
    packed = sk.open(data / "tokens").pack(64, seed=3)
    endless = sk.mix([packed, packed.skip(1)], weights=[1, 1], seed=0, stop="never")
    stream = packed.map(dict).stream(lanes=2).pack(100, key="tokens")
    targets = {
        "once": sk.Loader(packed, batch_size=4, epochs=1),
        "endless": sk.Loader(endless, batch_size=4),
        "stream": sk.Loader(stream, batch_size=4),
    }
    pages = TestClient(make_app(opened_of(targets)), base_url="http://127.0.0.1")
    last = len(packed) - 1
    assert pages.get(f"/p/once/sequence/{last}?as=json").json()["step"] == last // 4
    found = pages.get("/p/endless/sequence/4001?as=json").json()
    assert (found["step"], found["length"]) == (1000, 64)
    assert pages.get("/p/endless/sequence/4001").status_code == 200
    answer = pages.get("/p/stream/sequence/1?as=json")
    assert (answer.status_code, "stream" in answer.json()["error"]) == (404, True)


def test_a_replayed_step_of_a_stream_leads_to_its_sequences(data: Path) -> None:
    stream = sk.open(data / "tokens").stream(lanes=2).pack(40, key="tokens")
    opened = opened_of({"stream": sk.Loader(stream, batch_size=4, prefetch=0), "other": stream})
    opened = replace(opened, tokenizer=str(data / "tokenizer.json"))
    pages = TestClient(make_app(opened), base_url="http://127.0.0.1", follow_redirects=False)
    assert pages.get("/p/stream/replay/1/sequence/2").headers["location"].endswith("p/stream/replay/1")
    started = pages.post("/p/stream/replay/1/start", headers={"origin": "http://127.0.0.1"})
    job = opened.jobs[started.headers["location"].rpartition("=")[2]]
    assert job.wait(10)
    steps = pages.get(f"/p/stream/replay/1?job={job.name}").text
    assert f'href="1/sequence/2?job={job.name}"' in steps
    assert steps.count("int32 40") == 8
    with sk.Loader(stream, batch_size=4, collate=list, prefetch=0) as loader:
        batches = iter(loader)
        next(batches)
        record = next(batches)[2]
    address = f"/p/stream/replay/1/sequence/2?job={job.name}"
    found = pages.get(f"{address}&as=json").json()
    assert found["tokens"] == record["tokens"].tolist()
    assert [piece["count"] for piece in found["pieces"]] == [
        int((record["segment_ids"] == number + 1).sum()) for number in range(record["segment_ids"].max())
    ]
    page = pages.get(address).text
    assert page.count('<b class="border">') == len(found["pieces"])
    assert "of its document" not in page
    assert f'href="3?job={job.name}"' in page
    for wrong in (address.replace("/2?", "/4?"), address.replace("replay/1", "replay/2")):
        assert pages.get(wrong).status_code == 404
