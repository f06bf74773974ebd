"""The tables of the pages for users of other libraries name what exists, there and here."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.docs.peers import PEERS, exists, unknown_names
from tests.docs.tables import rows_of

import seekable as sk
from seekable import kaldi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.mark import ParameterSet

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "from").glob("*.md"))
ADDRESSED = {"ds": sk.Dataset, "stream": sk.Stream, "loader": sk.Loader, "sk": sk, "kaldi": kaldi}
NAMES = "|".join(ADDRESSED)


def rows() -> list[ParameterSet]:
    return [
        pytest.param(row.ours, id=f"{page.stem}: {row.theirs[:60]}")
        for page in PAGES
        for row in rows_of(page.read_text(encoding="utf-8"))
    ]


def signature_of(owner: Any, name: str) -> inspect.Signature:
    called = getattr(owner, name)
    return inspect.signature(called)


def holder_options() -> Iterator[str]:
    """Yield the fields of Kaldi's holders, which are arguments of what takes a holder."""
    for name in kaldi.holder_names():
        holder: Any = kaldi.find_holder(name)
        yield from (field.name for field in dataclasses.fields(holder))


@pytest.mark.parametrize("ours", rows())
def test_what_is_named_here_exists(ours: str) -> None:
    for prefix, name in re.findall(rf"\b({NAMES})\.(\w+)", ours):
        assert hasattr(ADDRESSED[prefix], name), f"{prefix}.{name}"
    for prefix, name, arguments in re.findall(rf"\b({NAMES})\.(\w+)\(([^()]*)\)", ours):
        named = set(re.findall(r"\b(\w+)=", arguments))
        signature = signature_of(ADDRESSED[prefix], name)
        known = {*signature.parameters, *(holder_options() if "holder" in signature.parameters else ())}
        assert named <= known, f"{prefix}.{name} has no {named - known}"


def test_every_page_is_in_the_index_and_in_the_comparison() -> None:
    index = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    comparison = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert f"\nfrom/{page.stem}\n" in index
        assert f"(from/{page.name})" in comparison


def test_every_page_has_its_peer() -> None:
    # Energon wants other versions than the tests do, options of Megatron are in no package, and nanoGPT and
    # llm.c are programs: their names are from their sources.
    of_sources = {"indexed-parquet-dataset", "energon", "megatron", "nanogpt"}
    assert {page.stem for page in PAGES} == {*PEERS, *of_sources}


ALONE = """
import json, sys
from tests.docs.peers import unknown_names
print(json.dumps(unknown_names(sys.argv[1])))
"""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=[pytest.mark.frameworks(name=peer.framework)] if peer.framework else [])
        for name, peer in PEERS.items()
        if peer.prepare is None  # test_from_mosaicml_streaming.py has the other one, in its process
    ],
)
def test_what_is_named_there_exists_and_nothing_is_left_out(page: str) -> None:
    if PEERS[page].alone:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", ALONE, page]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
    else:
        found = unknown_names(page)
    assert found == {"not there": [], "not in the table": []}


@pytest.mark.parametrize("span", ["load_dataset", "ds.shuffle(buffer_size=)", "ds.map(fn, batched=True)"])
def test_a_name_of_a_peer_is_known(span: str) -> None:
    assert exists(span, PEERS["datasets"])


@pytest.mark.parametrize("span", ["load_datasets", "ds.shuffled", "ds.shuffle(buffer=)"])
def test_a_name_that_a_peer_lacks_is_unknown(span: str) -> None:
    assert not exists(span, PEERS["datasets"])
