"""Hugging Face datasets over S3: JSON lines, read in order by s3fs."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from benchmarks.pipelines import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION = "datasets"


def convert(source: str, folder: str) -> None:  # noqa: ARG001 - as others have it
    """Make the folder: the JSON lines are read as they are."""
    os.makedirs(folder)


class Opponent:
    """A dataset that is streamed."""

    def __init__(self, folder: str) -> None:
        importlib.import_module("s3fs")
        self._library = importlib.import_module("datasets")

    def fetched(self, *, endpoint: str, bucket: str, keys: list[str]) -> Iterable[Any]:
        """Return the batches of an epoch."""
        dataset = self._library.load_dataset(
            "json",
            data_files=[f"s3://{bucket}/{key}" for key in keys],
            split="train",
            streaming=True,
            storage_options={"anon": True, "client_kwargs": {"endpoint_url": endpoint}},
        )
        batches: Iterable[Any] = dataset.iter(batch_size=BATCH)
        return batches
