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
WIDTH, HEIGHT = 1100, 760

SCREENS = (
    ("view-step", "light", "p/train/step/{spike}"),
    ("view-dataset", "light", "d/docs/"),
    ("view-row", "light", "d/docs/row/{row}"),
    ("view-mixture", "light", "p/train/mixture?from=0&to=400"),
    ("view-loss", "dark", "p/train/loss"),
    ("view-stats", "dark", "d/code/stats"),
)


def main(folder: str) -> None:
    """Write each screen as a PNG file into a folder."""
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        spike = make_run()
        row = (sk.open("docs")._node.size or 0) - 1 - STRANGE
        log = read_loss_log("train.jsonl")
        targets = {"docs": sk.open("docs"), "code": sk.open("code"), "train": OpenPipeline(loader())}
        server = Server(opened_of({**targets, "checkpoints": "checkpoints"}, log=log), port=0)
        server.start()
        try:
            for name, scheme, address in SCREENS:
                take(server.url + address.format(spike=spike, row=row), scheme, os.path.join(folder, name))
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
    run = loader()
    place = sk.open("docs").locate(len(pages) - 1 - STRANGE)
    spike = run.when(place.path, place.row, epochs=4)[-1].step
    for _ in range(3):
        run.skip_batches(100)
        sk.save_state("checkpoints", run)
    noise = np.random.default_rng(0).normal(0, 0.02, STEPS)
    losses = [
        {"step": step, "loss": 1.6 + 2.4 * math.exp(-step / 90) + float(noise[step]) + 1.4 * (step == spike)}
        for step in range(STEPS)
    ]
    Path("train.jsonl").write_text("\n".join(map(json.dumps, losses)), encoding="utf-8")
    return spike


def loader() -> sk.Loader:
    """Return the loader of the run."""
    docs, code = sk.open("docs").shuffle(seed=1), sk.open("code").shuffle(seed=2)
    mixed = sk.mix({"docs": docs, "code": code}, weights={"docs": 0.7, "code": 0.3}, seed=0)
    return sk.Loader(mixed, global_batch_size=BATCH, rank=0, world_size=RANKS, prefetch=0)


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
