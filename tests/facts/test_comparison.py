"""Two pipelines compared, against places looked up one by one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

import seekable as sk
from seekable.loader.step_plan import reads_of
from seekable.viewer.facts.pipelines import Batches, pipeline_of
from seekable.viewer.facts.run_mixture import mixture
from seekable.viewer.pages.pipeline import LOOKED_AT, compare_pipelines, first_difference

if TYPE_CHECKING:
    from pathlib import Path

ROWS = sk.from_sequence(range(50), version="rows")
OTHER = sk.from_sequence(range(30), version="other")

datasets = st.sampled_from(
    [
        ROWS,
        ROWS.shuffle(seed=1),
        ROWS.shuffle(seed=2),
        ROWS.take(20),
        sk.concat([ROWS.take(20), OTHER]),
        sk.mix({"a": ROWS, "b": OTHER}, weights={"a": 2, "b": 1}, seed=0),
        sk.mix({"a": ROWS.shuffle(seed=1), "b": OTHER}, weights={"a": 2, "b": 1}, seed=3),
        ROWS.batch(3),
        ROWS.shuffle(seed=1).batch(3),
        ROWS.map(str),
    ]
)


@given(datasets, datasets, st.integers(0, 12), st.integers(1, 9), st.integers(1, 9))
def test_a_comparison_is_that_of_places_one_by_one(
    old: sk.Dataset, new: sk.Dataset, step: int, batch: int, other: int
) -> None:
    loaders = [
        sk.Loader(ds, batch_size=size, collate=list, prefetch=0) for ds, size in ((old, batch), (new, other))
    ]
    found = compare_pipelines(*loaders, step=step)
    places = [[record.place for record in loader.plan(step=step).records] for loader in loaders]
    left = list(places[1])
    both = 0
    for place in places[0]:
        if place in left:
            left.remove(place)
            both += 1
    assert found.in_both == both
    assert [found.old.records, found.new.records] == [len(each) for each in places]
    assert sum(records for _, records in found.old.sources) == len(places[0])
    first = [ds._node.plan(np.arange(300)).locate() for ds in (old, new)]
    expected = next((n for n, (one, two) in enumerate(zip(*first, strict=True)) if one != two), None)
    if found.same:
        assert expected is None
    else:
        assert found.first_different == expected
        assert bool(found.differences)
    json.dumps(found.document(), allow_nan=False)


def test_the_bytes_of_a_step_are_those_of_its_records_also_of_a_rebuilt_run(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'"{"x" * row}"\n' for row in range(40)))
    loader = sk.Loader(sk.open(tmp_path / "a.jsonl").shuffle(seed=1), batch_size=8, collate=list, prefetch=0)
    loader.skip_batches(2)
    sk.save_state(tmp_path / "states", loader)
    rebuilt = pipeline_of(
        str(tmp_path / "states"), Batches({"batch_size": 8}), state=None, roots=[], index_dir=None
    ).loader
    found = compare_pipelines(rebuilt, loader, step=3)
    wanted = sum(record.place.length for record in loader.plan(step=3).records)
    assert (found.old.bytes, found.new.bytes) == (wanted, wanted)
    (tmp_path / "a.jsonl").unlink()
    gone = pipeline_of(
        str(tmp_path / "states"), Batches({"batch_size": 8}), state=None, roots=[], index_dir=None
    ).loader
    assert compare_pipelines(gone, gone, step=3).old.bytes is None


def test_what_differs_late_or_never_is_said_with_what_was_compared() -> None:
    rows = sk.from_sequence(range(200_000), version="many")
    late = sk.concat([rows.take(70_000), rows.skip(70_001)])
    assert first_difference(rows._node, late._node)[0] == 70_000
    assert first_difference(rows._node, rows.map(str)._node) == (None, LOOKED_AT)
    assert first_difference(rows._node, rows.take(0)._node) == (None, 0)


def test_rows_of_a_table_have_no_bytes_of_their_own(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"text": ["x" * n for n in range(100)]}), tmp_path / "a.parquet", row_group_size=50
    )
    rows = sk.open(tmp_path / "a.parquet")
    loader = sk.Loader(rows, batch_size=60, prefetch=0)
    assert compare_pipelines(loader, loader, step=0).old.bytes is None
    places = rows.locate([0, 1, 50])
    (reads,) = reads_of(loader.plan(step=0).records)
    assert reads.bytes == places[0].length + places[2].length
    assert [place.is_shared for place in places] == [True] * 3
    fact = mixture(loader, start=0, stop=1, unit="bytes")
    assert fact.made_of.endswith("of tables, the compressed bytes of all files by their rows")
    items = sk.from_sequence([[1, 2]]).flatten()
    assert items.locate(0).is_shared
    assert not sk.from_sequence([1]).locate(0).is_shared
