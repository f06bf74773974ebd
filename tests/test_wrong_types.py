"""Arguments of wrong types, and numbers out of all bounds, end in an error of ours that names them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable import kaldi
from seekable.errors import SeekableError
from seekable.loader.checkpoint_files import read_saved
from seekable.testing import assert_holder, assert_resumes_exactly

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ANY = [object(), 1.5, float("nan"), b"x", [None], {1: 2}, np.array([1, 2]), int]
"""Values that are right for hardly any argument."""
NUMBERS = [*ANY, None, "7", 1 << 70, -(1 << 70)]
PATHS = [object(), 5, None, [], {}, "a\0b", "\ud800"]
FUNCTIONS: list[Any] = [None, 5, "len", []]
LISTS = [None, 5, len, float("nan")]
CHOICES: list[Any] = [None, 5, "nothing", [], np.array(["pad", "drop"])]

ds = sk.from_sequence([{"tokens": [1, 2]}, {"tokens": [3]}] * 2)
endless = sk.mix([ds, ds], seed=1, stop="never")
loader = sk.Loader(ds, batch_size=2)

CALLS: dict[str, tuple[Callable[[Any], object], list[Any]]] = {
    "batch_size=": (
        lambda value: sk.Loader(ds, batch_size=value),
        [each for each in NUMBERS if each is not None],
    ),
    "workers=": (lambda value: sk.Loader(ds, workers=value), NUMBERS),
    "end=": (lambda value: sk.Loader(ds, end=value), CHOICES),
    "type=": (lambda value: sk.Workers(1, type=value), CHOICES),
    "collate=": (lambda value: sk.Loader(ds, collate=value), FUNCTIONS),
    "then=": (lambda value: sk.FillCollate(then=value), FUNCTIONS),
    "locate(step=)": (lambda value: loader.locate(step=value), [*NUMBERS, (1 << 63) - 1]),
    "when(path)": (lambda value: loader.when(value, 0), PATHS),
    "load_state_dict(resume=)": (lambda value: loader.load_state_dict({}, resume=value), CHOICES),
    "save_state(folder)": (lambda value: sk.save_state(value, loader), PATHS),
    "load_state(folder)": (lambda value: sk.load_state(value, loader), PATHS),
    "save(path)": (ds.save, PATHS),
    "load_dataset(root=)": (lambda value: sk.load_pipeline("no", root=value), PATHS),
    "open(source)": (sk.open, PATHS),
    "open_stream(source)": (sk.open_stream, PATHS),
    "open_stream(format=)": (lambda value: sk.open_stream("no.txt", format=value), CHOICES[1:]),
    "Index(folder=)": (lambda value: sk.open("no", index=sk.Index(folder=value)), PATHS),
    "filter(save=)": (lambda value: ds.filter(len, save=value), [each for each in PATHS if each is not None]),
    "mix(parts)": (lambda value: sk.mix(value, seed=1), LISTS),
    "concat(parts)": (sk.concat, LISTS),
    "zip(parts)": (sk.zip, LISTS),
    "a row of many digits": (lambda value: ds[value], [1 << 70, [1 << 70], [0, -(1 << 70)]]),
    "a row of endless data": (lambda value: endless[value], [1 << 70, "7", None]),
    "in endless data": (lambda value: value in endless, [1]),
    "pack(separator=)": (lambda value: ds.stream().pack(4, separator=value), [*ANY, "7", 1 << 70]),
    "pack(pad=)": (lambda value: ds.stream().pack(4, pad=value), NUMBERS),
    "pack(key=)": (lambda value: ds.stream().pack(4, key=value), ANY),
    "bucket(boundaries=)": (
        lambda value: ds.stream().bucket(len, max_cost=4, seed=1, boundaries=value),
        [5, len, [None], [2, 1], float("nan")],
    ),
    "stream(lanes=)": (lambda value: ds.stream(lanes=value), [*ANY, 1 << 40]),
    "jobs=": (lambda value: ds.flatten(jobs=value), [*ANY, 1 << 40]),
    "version=": (lambda value: ds.map(len, version=value), [*ANY, 1 << 70]),
    "masked=": (lambda value: sk.LossMask(masked=value), [*LISTS, "text"]),
    "num_tokens": (lambda value: sk.LossMask().generate("text", value), NUMBERS),
    "rate=": (lambda value: sk.Fim(rate=value, prefix=1, suffix=2, middle=3), [*ANY, None, "7"]),
    "open_rx": (kaldi.open_rx, PATHS),
    "read": (lambda value: kaldi.read(value, "matrix"), PATHS),
    "split_offset": (kaldi.split_offset, [5, None, []]),
    "validate_directory": (kaldi.validate_directory, PATHS),
    "write_token": (lambda value: kaldi.write_token(value, "a"), [None, 5]),
    "kind": (lambda value: kaldi.read_basic_type(io.BytesIO(b"1 "), value, binary=False), CHOICES),
    "SparseVector": (lambda value: kaldi.SparseVector(value, [0], [1.0]), NUMBERS),  # type: ignore[arg-type]
    "assert_resumes_exactly(runs=)": (
        lambda value: assert_resumes_exactly(lambda: loader, runs=value, new_process=False),
        [*NUMBERS, 0],
    ),
    "assert_resumes_exactly(cuts=)": (
        lambda value: assert_resumes_exactly(lambda: loader, cuts=value, new_process=False),
        [5, "ab", [], [None], [99], {}, [1.5]],
    ),
    "assert_resumes_exactly(factory)": (
        lambda value: assert_resumes_exactly(value, new_process=False),
        FUNCTIONS,
    ),
    "assert_holder(values)": (lambda value: assert_holder("int32", value), LISTS),
    "SparseMatrix": (kaldi.SparseMatrix, [*LISTS, "rows"]),
}
"""Calls of one argument, and values that each refuses."""


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_argument_is_an_error_of_ours(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    call, values = CALLS[name]
    for value in values:
        with pytest.raises(SeekableError):
            call(value)


def test_documents_of_tokens_have_no_keys(tmp_path: Path) -> None:
    np.arange(9, dtype=np.uint16).tofile(tmp_path / "a.bin")
    form = sk.formats.Tokens(dtype="uint16", eos=3)
    with pytest.raises(sk.errors.InvalidArgument, match="documents of tokens have numbers alone"):
        sk.open(f"tokens:{tmp_path}/a.bin", format=form, key=str)


def test_a_key_may_have_any_name_that_json_has(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a\\"b": "x", "\\ud800": "y"}\n{"a\\"b": "z", "\\ud800": "w"}\n')
    for name, key in (('a"b', "z"), ("\ud800", "w")):
        assert sk.open(tmp_path / "a.jsonl", key=name).key(key)['a"b'] == "z"


def test_a_default_with_half_of_a_pair_is_described() -> None:
    assert ds.fill(default="\ud800").fingerprint != ds.fill(default="\ud801").fingerprint


def test_rows_of_many_digits_are_out_of_range() -> None:
    with pytest.raises(sk.errors.OutOfRange, match=f"row {1 << 70} is out of range: there are 4 records"):
        ds[[1 << 70]]


def test_nobody_is_told_to_remove_a_file_that_is_no_state(tmp_path: Path) -> None:
    data, state = tmp_path / "a.jsonl", tmp_path / "state-000000000001-00000-of-00001.json"
    for path in (data, state):
        path.write_text('{"a": 1}\n{"a": 2}\n')
    with pytest.raises(sk.errors.CorruptState, match="name a state, or the folder"):
        read_saved(data)
    with pytest.raises(sk.errors.CorruptState, match="remove it to resume from the state before"):
        read_saved(state)


def test_files_of_objects_and_of_lists_are_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, line in (("a", '{"id": 1}'), ("b", "[1]"), ("c", '{"id": 2, "more": 3}')):
        (tmp_path / f"{name}.jsonl").write_text(f"{line}\n")
    sk.open([tmp_path / "a.jsonl", tmp_path / "c.jsonl"])
    assert not caplog.messages
    sk.open([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert "b.jsonl', which has 'no fields, a list'" in caplog.text
