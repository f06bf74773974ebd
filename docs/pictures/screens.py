"""Takes the pictures of ``seekable view`` in the docs, of a run over the text of this project.

    python docs/pictures/screens.py [FOLDER]

It needs a Chromium (``make browser``) and Playwright, which the extra ``frameworks`` has. The loss of the
run is made up; the data, the order and the pages are what the library does with it.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from playwright.sync_api import sync_playwright

import seekable as sk
from seekable.viewer.facts.loss_log import read_loss_log
from seekable.viewer.opened import OpenPipeline, opened_of
from seekable.viewer.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent.parent
BATCH, RANKS, STEPS, STRANGE = 64, 4, 400, 173
WIDTH, HEIGHT = 1280, 860

SCREENS = (
    ("view-step", "light", "p/train/step/{spike}"),
    ("view-dataset", "light", "d/docs/"),
    ("view-row", "light", "d/chats/row/0"),
    ("view-mixture", "light", "p/train/mixture?from=0&to=400"),
    ("view-loss", "dark", "p/train/loss?at={spike}"),
    ("view-stats", "dark", "d/code/stats"),
)


CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Answer in a few words, and show your work."},
        {"role": "user", "content": "What is the sum of the numbers from **1 to 100**?", "weight": 0},
        {
            "role": "assistant",
            "reasoning_content": "There is a formula for it.",
            "content": "The sum is $$\\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}$$\n\n"
            "```python\ndef total(n):\n    return n * (n + 1) // 2\n```",
            "tool_calls": [{"function": {"name": "run", "arguments": '{"code": "total(100)"}'}, "id": "c1"}],
        },
        {"role": "tool", "content": '{"result": 5050}', "tool_call_id": "c1"},
        {"role": "assistant", "content": "It is **5,050**."},
    ],
    "tools": [{"type": "function", "function": {"name": "run", "description": "runs a program"}}],
    "source": "sums",
}


def main(folder: str) -> None:
    """Write each screen as a PNG file into a folder."""
    with tempfile.TemporaryDirectory(prefix="run-") as work:
        os.chdir(work)
        spike = make_run()
        runs = {"train": OpenPipeline(loader()), "train-2": OpenPipeline(loader(seed=7))}
        targets = {"docs": sk.open("docs"), "chats": sk.open("chats"), "code": sk.open("code"), **runs}
        logs = {name: read_loss_log(f"{name}.jsonl") for name in runs}
        server = Server(opened_of({**targets, "checkpoints": "checkpoints"}, logs=logs), port=0)
        server.start()
        try:
            for name, scheme, address in SCREENS:
                take(server.url + address.format(spike=spike), scheme, os.path.join(folder, name))
        finally:
            server.close()


def take(address: str, scheme: Any, path: str) -> None:
    """Write the picture of one page; what is fetched after the page is in it."""
    with sync_playwright() as playwright:
        found = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=found)
        page = browser.new_page(color_scheme=scheme, viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(address, wait_until="networkidle")
        page.screenshot(path=f"{path}.png")
        browser.close()


def make_run() -> int:
    """Write two sources, the states of a run and its losses, and return the step with the odd record."""
    strange = {"id": "docs/strange", "text": "0.000000 " * 900, "meta": {"file": "table.txt", "lang": "en"}}
    pages = list(paragraphs())
    pages.insert(len(pages) - STRANGE, strange)
    write("docs", pages, files=4)
    write("code", list(functions()), files=2)
    write("chats", [CHAT], files=1)
    run = loader()
    place = sk.open("docs").locate(len(pages) - 1 - STRANGE)
    spike = run.when(place.path, place.row, epochs=4)[-1].step
    for _ in range(3):
        run.skip_batches(100)
        sk.save_state("checkpoints", run)
    noise = np.random.default_rng(0).normal(0, 0.02, STEPS)
    for name, least, has_spike in (("train", 1.6, True), ("train-2", 1.75, False)):
        losses = [
            {"step": step, "loss": least + 2.4 * math.exp(-step / 90) + float(noise[step])}
            for step in range(STEPS)
        ]
        losses[spike]["loss"] += 1.4 * has_spike
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, losses)), encoding="utf-8")
        noise = noise[::-1]
    return spike


def loader(*, seed: int = 1) -> sk.Loader:
    """Return the loader of a run."""
    docs, code = sk.open("docs").shuffle(seed=seed), sk.open("code").shuffle(seed=seed + 1)
    mixed = sk.mix({"docs": docs, "code": code}, weights={"docs": 0.7, "code": 0.3}, seed=0)
    return sk.Loader(mixed, global_batch_size=BATCH, rank=0, world_size=RANKS, epochs=6, prefetch=0)


def paragraphs() -> Iterator[dict[str, Any]]:
    """Yield the paragraphs of the pages of the docs."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for number, text in enumerate(path.read_text(encoding="utf-8").split("\n\n")):
            name = path.relative_to(ROOT).as_posix()
            yield {"id": f"{name}#{number}", "text": text.strip(), "meta": {"file": name, "lang": "en"}}


def functions() -> Iterator[dict[str, Any]]:
    """Yield the functions of the library."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for number, text in enumerate(path.read_text(encoding="utf-8").split("\n\n\n")):
            yield {"id": f"{name}#{number}", "text": text.strip(), "meta": {"file": name, "lang": "py"}}


def write(folder: str, records: Sequence[dict[str, Any]], *, files: int) -> None:
    """Write records as JSON lines, a part of them into each file."""
    os.mkdir(folder)
    for file in range(files):
        part = records[file * len(records) // files : (file + 1) * len(records) // files]
        lines = "".join(json.dumps(record) + "\n" for record in part)
        Path(folder, f"part-{file}.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(__file__)))
