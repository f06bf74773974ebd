"""Keys that several records have: found when their index is built, told each time it is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.nodes.keys.key import key_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.keys.key import KeyOf, Keys
    from seekable.nodes.sources.file_source import FileSource
    from seekable.nodes.sources.tables import TableSource


__all__ = ["duplicates_told", "find_duplicates"]

_MOST_READ = 100_000
"""Records that are read to tell keys that are the same from keys whose hashes happen to be; where more have
the hash of another, next to all of them are the same."""

_MOST_KEYS = 5
_MOST_ROWS = 10


def find_duplicates(
    source: FileSource | TableSource, of: KeyOf, hashes: NDArray[np.uint64], rows: Int64s
) -> dict[str, Any] | None:
    """Return, JSON-safe, what is to be remembered of keys that several records have; None if there are none.

    Args:
        source: the records.
        of: what their keys are.
        hashes: the hashes of all keys, sorted.
        rows: the row of each, ascending where hashes are the same.
    """
    edges = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1])) if hashes.size else np.empty(0, np.int64)
    counts = np.diff(edges, append=hashes.size)
    several = counts > 1
    starts, counts = edges[several], counts[several]
    order = np.argsort(rows[starts])
    groups = zip(starts[order].tolist(), counts[order].tolist(), strict=True)
    if counts.sum() > _MOST_READ:
        first = [(start, min(count, _MOST_ROWS), count) for start, count in list(groups)[:_MOST_KEYS]]
        return {
            "keys": int(counts.size),
            "records": int(counts.sum()),
            "first": [
                {
                    "key": _key(source, of, int(rows[start])),
                    "rows": rows[start : start + some].tolist(),
                    "records": count,
                }
                for start, some, count in first
            ],
        }
    found = [
        same for start, count in groups for same in _same(source, of, rows[start : start + count].tolist())
    ]
    if not found:
        return None
    return {
        "keys": len(found),
        "records": sum(len(same) for _, same in found),
        "first": [
            {"key": key, "rows": same[:_MOST_ROWS], "records": len(same)} for key, same in found[:_MOST_KEYS]
        ],
    }


def duplicates_told(source: FileSource | TableSource, keys: Keys) -> str:
    """Return the warning of an index that knows of duplicates.

    Args:
        source: the records.
        keys: their keys.
    """
    known = keys.index.duplicates or {}
    lines = [f"{known['records']:,} records share {known['keys']:,} of the keys {keys.name} with others:"]
    for same in known["first"]:
        places = [
            f"{place.path} row {place.row}"
            for place in source.plan(np.array(same["rows"], dtype=np.int64)).locate()
        ]
        rest = same["records"] - len(places)
        lines.append(f"  {same['key']!r}: {', '.join(places)}" + (f" and {rest:,} more" if rest else ""))
    if known["keys"] > len(known["first"]):
        lines.append(f"  and {known['keys'] - len(known['first']):,} more keys")
    return "\n".join(lines)


def _same(source: FileSource | TableSource, of: KeyOf, rows: list[int]) -> Iterator[tuple[Any, list[int]]]:
    """Yield the keys that several of some rows have, and the rows of each."""
    by_key: dict[tuple[type, Any], list[int]] = {}
    for row in rows:
        key = _key(source, of, row)
        by_key.setdefault((type(key), key), []).append(row)
    for (_, key), same in by_key.items():
        if len(same) > 1:
            yield key, same


def _key(source: FileSource | TableSource, of: KeyOf, row: int) -> Any:
    return key_in(source.record(row), of)
