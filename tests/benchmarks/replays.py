"""An opponent whose restarts read again what came before, with figures that it makes up."""

from __future__ import annotations

import shutil
from typing import Any

DISTRIBUTION = "numpy"


def convert(source: str, folder: str) -> None:
    shutil.copytree(source, folder)


class Opponent:
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def run(self, shards: str, chunk: int | None) -> float:
        return 3600.0 if shards and chunk else 1800.0

    def restarts(self, shards: str, chunk: int | None, cuts: list[int]) -> list[dict[str, Any]]:
        assert shards
        return [
            {"bytes": 10**6 + cut, "seconds": 60.0, "wrong": None if chunk else "a lane is lost"}
            for cut in cuts
        ]

    def ranks(self, shards: str, chunk: int | None) -> list[int]:
        assert shards
        return [126, 130 if chunk else 0]

    def records(self, shards: str, *, whole: bool) -> float:
        return 7200.0 if shards and whole else 3600.0
