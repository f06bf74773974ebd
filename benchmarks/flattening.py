"""Several records made of one: counting the items of all records, and reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.measure import Contestant, Row, Target, race, relative

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Data

_RECORDS = 1_000_000


def words(record: dict[str, Any]) -> list[str]:
    """Return the words of a record."""
    text: str = record["text"]
    return text.split()


def rows(data: Data) -> Iterator[Row]:
    """Measure `flatten` against the loop that makes the same items once."""
    ds = sk.open(data.short).take(_RECORDS)
    items = ds.flatten(words, jobs=1)

    def loop() -> None:
        found: list[str] = []
        for record in ds:
            found.extend(words(record))

    contestants = {
        "count": Contestant(lambda: ds.flatten(words, jobs=1), count=len(ds)),
        "read": Contestant(lambda: sum(1 for _ in items), count=len(ds)),
        "loop": Contestant(loop, count=len(ds)),
    }
    times = race(contestants, rounds=data.sizes.rounds)
    for name, what, target in (
        ("count", f"flatten {len(ds):,} records into {len(items):,} items", Target("at most", 1.3)),
        ("read", "read all items of flatten in order", None),
    ):
        yield relative(
            what,
            times.median(name) * 1e6,
            "us a record",
            target,
            against=f"the plain loop {times.median('loop') * 1e6:.2f}",
            ratio=times.ratio(name, over="loop"),
        )
