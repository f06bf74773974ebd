"""Small folders of Shar, made by ``tarfile`` and ``json`` alone."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["cut", "pairs", "recording", "write_lines", "write_shar", "write_tar"]


def recording(number: int, *, rate: int = 8000, frames: int = 4) -> dict[str, Any]:
    """The manifest of a recording, as Lhotse writes it into a tar file."""
    return {
        "id": f"rec-{number}",
        "sources": [{"type": "shar", "channels": [0], "source": ""}],
        "sampling_rate": rate,
        "num_samples": frames,
        "duration": frames / rate,
        "channel_ids": [0],
    }


def cut(number: int, name: str | None = None, **more: Any) -> dict[str, Any]:
    """A cut with the placeholder of a recording."""
    return {
        "id": f"utt-{number}" if name is None else name,
        "start": 0,
        "duration": 0.0005,
        "channel": 0,
        "supervisions": [{"id": f"sup-{number}", "text": f"words {number}"}],
        "recording": {"id": f"placeholder-{number}", "sources": [{"type": "shar", "source": ""}]},
        **more,
        "type": "MonoCut",
    }


def pairs(
    values: Iterable[tuple[str, str, bytes, Mapping[str, Any] | None]],
) -> list[tuple[str, bytes]]:
    """The members of pairs, given id, suffix, payload and manifest; no manifest for no value."""
    members: list[tuple[str, bytes]] = []
    for name, suffix, payload, manifest in values:
        if manifest is None:
            members += [(f"{name}.nodata", b""), (f"{name}.nometa", b"")]
        else:
            line = (json.dumps(manifest) + "\n").encode()
            members += [(f"{name}.{suffix}", payload), (f"{name}.json", line)]
    return members


def write_tar(path: Path, members: Iterable[tuple[str, bytes]], form: int = tarfile.PAX_FORMAT) -> None:
    with tarfile.open(path, "w", format=form) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_shar(folder: Path, shards: Iterable[int], *, suffix: str = "jsonl") -> list[dict[str, Any]]:
    """Write shards of some cuts each, with a field of recordings and one of languages; return the cuts."""
    folder.mkdir(exist_ok=True)
    cuts: list[dict[str, Any]] = []
    for shard, count in enumerate(shards):
        own = [cut(len(cuts) + number) for number in range(count)]
        write_lines(folder / f"cuts.{shard:06}.{suffix}", own)
        values = [
            (each["id"], "wav", f"payload {each['id']}".encode(), recording(len(cuts) + number))
            for number, each in enumerate(own)
        ]
        write_tar(folder / f"recording.{shard:06}.tar", pairs(values))
        rows = [
            {"cut_id": each["id"], **({} if number % 3 == 2 else {"lang": f"l{number % 3}"})}
            for number, each in enumerate(own)
        ]
        write_lines(folder / f"lang.{shard:06}.{suffix}", rows)
        cuts += own
    return cuts
