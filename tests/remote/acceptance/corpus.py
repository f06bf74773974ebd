"""Records in some objects of a bucket, and the same records in files of this machine."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.proxy import Front
    from tests.remote.servers.bucket import Bucket


@dataclass(frozen=True, slots=True)
class Corpus:
    """JSON lines in a bucket."""

    bucket: Bucket
    keys: tuple[str, ...]
    records: tuple[dict[str, Any], ...]
    """The records of all objects, one object after the other."""
    index_dir: str

    @classmethod
    def made(
        cls, bucket: Bucket, folder: Path, *, objects: int = 3, each: int = 100, size: int = 200
    ) -> Corpus:
        """Upload objects of `each` records of about `size` bytes."""
        drawn = random.Random(f"{objects} {each} {size}")
        records = tuple(
            {"id": number, "text": drawn.randbytes(drawn.randrange(size) // 2).hex()}
            for number in range(objects * each)
        )
        lines = [json.dumps(record).encode() + b"\n" for record in records]
        keys = tuple(f"corpus/part-{number:02d}.jsonl" for number in range(objects))
        bucket.upload({key: b"".join(lines[n * each : (n + 1) * each]) for n, key in enumerate(keys)})
        return cls(bucket, keys, records, str(folder / "index"))

    def behind(self, front: Front) -> Corpus:
        """Return the same corpus with a proxy before its server."""
        return replace(self, bucket=self.bucket.behind(front))

    @property
    def urls(self) -> list[str]:
        """The addresses of the objects."""
        return self.bucket.urls(*self.keys)

    def open(self, **options: Any) -> sk.Dataset:
        """Open all objects with further options of the store."""
        asked = {**self.bucket.options, **options}
        return sk.open(self.urls, index=sk.Index(folder=self.index_dir), storage=sk.Storage(options=asked))

    def arguments(self, **options: Any) -> dict[str, Any]:
        """Return what another process opens it with, for JSON."""
        asked = {**self.bucket.options, **options}
        return {"source": self.urls, "storage_options": asked, "index_dir": self.index_dir}

    def credentials(self) -> dict[str, str]:
        """Return the variables that a child which is not forked needs: a pickle has no secrets."""
        names = {"AWS_ACCESS_KEY_ID": "access_key_id", "AWS_SECRET_ACCESS_KEY": "secret_access_key"}
        return {variable: self.bucket.options[name] for variable, name in names.items()}
