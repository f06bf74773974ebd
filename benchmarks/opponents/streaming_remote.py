"""MosaicML Streaming over S3: whole shards are copied to a folder of this machine."""

from __future__ import annotations

import importlib
import os
import tempfile
from typing import TYPE_CHECKING, Any

from benchmarks.opponents import streaming
from benchmarks.pipelines import BATCH, WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator

DISTRIBUTION, convert = streaming.DISTRIBUTION, streaming.convert


class Opponent:
    """A StreamingDataset that begins without shards."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.basename(folder)
        self._library = streaming.imported()
        self._torch = importlib.import_module("torch.utils.data")
        importlib.import_module("boto3.s3.transfer")
        # What a process that was killed has left would be taken for another rank of this one.
        importlib.import_module("streaming.base.util").clean_stale_shared_memory()

    def fetched(self, *, endpoint: str, bucket: str, keys: list[str]) -> Iterator[Any]:
        """Yield the batches of an epoch, made by two workers of torch's ``DataLoader``."""
        del keys  # the shards are in a folder of their own
        os.environ.update(
            S3_ENDPOINT_URL=endpoint,
            AWS_ACCESS_KEY_ID="any",
            AWS_SECRET_ACCESS_KEY="any",
            AWS_DEFAULT_REGION="us-east-1",
        )
        with tempfile.TemporaryDirectory() as local:
            dataset = self._library.StreamingDataset(
                remote=f"s3://{bucket}/converted/{self._folder}",
                local=local,
                shuffle=True,
                shuffle_seed=0,
                batch_size=BATCH,
            )
            # Its workers are forked, and would share the connection on which the first file came.
            for stream in dataset.streams:
                stream._downloader.clean_up()
            yield from self._torch.DataLoader(dataset, batch_size=BATCH, num_workers=WORKERS)
