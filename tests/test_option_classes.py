"""Option classes check each field when they are made, and document themselves: all of them, found here."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import seekable as sk


def option_classes() -> dict[str, type[Any]]:
    """Return the frozen values that can be made without arguments, by the names that users write."""
    found = {}
    for module, prefix in ((sk, "sk"), (sk.formats, "sk.formats")):
        for name in module.__all__:
            made = getattr(module, name)
            fields = dataclasses.fields(made) if dataclasses.is_dataclass(made) else ()
            if inspect.isclass(made) and fields and all(_has_default(field) for field in fields):
                found[f"{prefix}.{name}"] = made
    return found


def _has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


CLASSES = option_classes()
OTHERS = {"sk.Simulation", "sk.FillCollate"}

FLAG: list[Any] = [1, "yes", None]
COUNT: list[Any] = [-1, 1.5, True, "7"]
TEXT: list[Any] = [1, b"text"]
WORD: list[Any] = ["no such word", 1, ["hive"]]

WRONG: dict[str, list[Any]] = {
    "sk.Index.folder": ["s3://bucket/indexes", 1],
    "sk.Index.jobs": [0, *COUNT],
    "sk.Index.executor": [4, "ray"],
    "sk.Index.sampled": FLAG,
    "sk.Index.publish": FLAG,
    "sk.Index.most_bytes": COUNT,
    "sk.Index.allow": ["", "/", "data/*", 1, [1]],
    "sk.LossMask.masked": ["prompt", 1, [1]],
    "sk.LossMask.eos": FLAG,
    "sk.Packing.method": WORD,
    "sk.Packing.order": WORD,
    "sk.Packing.samples": [0, *COUNT],
    "sk.Packing.most": [0, *COUNT],
    "sk.Packing.long": WORD,
    "sk.Packing.positions": WORD,
    "sk.Packing.pad": [1.5, True, "7", 1 << 63],
    "sk.Storage.options": ["region", {1: "region"}],
    "sk.Storage.filesystem": ["s3", 1],
    "sk.Storage.cache": COUNT,
    "sk.Storage.pin": WORD,
    "sk.Storage.refresh": FLAG,
    "sk.Storage.max_open_files": [0, *COUNT],
    "sk.formats.Csv.delimiter": ["ab", "", "\n", *TEXT],
    "sk.formats.Csv.quote": ["ab", "\n", *TEXT],
    "sk.formats.Csv.encoding": ["no-such-encoding", "utf-16", *TEXT],
    "sk.formats.Csv.partitions": WORD,
    "sk.formats.Csv.field": TEXT,
    "sk.formats.Jsonl.partitions": WORD,
    "sk.formats.Jsonl.field": TEXT,
    "sk.formats.Jsonl.pack": TEXT,
    "sk.formats.Kaldi.holder": ["no such holder", 1, int],
    "sk.formats.Kaldi.pipes": WORD,
    "sk.formats.Kaldi.kind": WORD,
    "sk.formats.Kaldi.permissive": FLAG,
    "sk.formats.Spans.units": ["bytes", *WORD],
    "sk.formats.Spans.labels": ["person", 1, [1], ["a", "a"]],
    "sk.formats.Tables.strict": FLAG,
    "sk.formats.Tables.partitions": WORD,
    "sk.formats.Tables.kind": WORD,
    "sk.formats.Tar.group": WORD,
    "sk.formats.Tar.splitname": WORD,
    "sk.formats.Tar.missing": WORD,
    "sk.formats.Tar.concatenated": FLAG,
    "sk.formats.Tar.suffix": ["", {"image": ""}, *TEXT, {"image": 1}],
    "sk.formats.Tar.partitions": WORD,
    "sk.formats.Tar.pairs": FLAG,
    "sk.formats.Text.partitions": WORD,
    "sk.formats.Text.column": TEXT,
    "sk.formats.TokenStore.bos": [1.5, True, [1]],
    "sk.formats.TokenStore.engine": WORD,
    "sk.formats.TokenStore.parts": ["parts", 1],
    "sk.formats.TokenStore.align": ["loss_mask", 1, ["a", "a"], ["a/b"], ["tokens"], {"a": "text"}, {"a": 5}],
    "sk.formats.TokenStore.dtype": ["float32", "no such dtype", 1],
    "sk.formats.TokenStore.idx": FLAG,
    "sk.formats.TokenStore.sample_size": [0, *COUNT],
    "sk.formats.TokenStore.rows_per_file": [0, *COUNT],
    "sk.formats.Tokens.dtype": ["float32", "no such dtype", 1],
    "sk.formats.Tokens.eos": COUNT,
    "sk.formats.Tokens.bos": COUNT,
    "sk.formats.Tokens.partitions": WORD,
}
"""Values that break the rule of each field, some of the right type and some of another one."""

FIELDS = [
    (name, field.name)
    for name, kind in CLASSES.items()
    if name not in OTHERS
    for field in dataclasses.fields(kind)
]


def test_each_field_has_cases() -> None:
    assert {f"{name}.{field}" for name, field in FIELDS} == WRONG.keys()


@pytest.mark.parametrize(("name", "field"), FIELDS, ids=".".join)
def test_a_wrong_value_is_refused_when_the_options_are_made(name: str, field: str) -> None:
    for value in (*WRONG[f"{name}.{field}"], object()):
        with pytest.raises((sk.errors.InvalidArgument, sk.errors.WrongType)) as caught:
            CLASSES[name](**{field: value})
        said = str(caught.value)
        assert said.startswith(f"{name}: "), value
        assert field in said or "array beside the tokens" in said, value
        shown = {"filesystem": type(value).__name__, "options": ""}.get(field, repr(value)[:40])
        if not isinstance(value, list | dict):
            assert shown.strip("'\"") in said, said


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - OTHERS))
def test_options_explain_each_field_and_end_in_an_example(name: str) -> None:
    said = inspect.getdoc(CLASSES[name]) or ""
    for field in dataclasses.fields(CLASSES[name]):
        is_told = f"    {field.name}: " in said or name == "sk.LossMask"
        assert is_told, field.name
    assert ">>> " in said.rpartition("Example:")[2]


OF_OPEN = sorted(
    {
        field
        for name, field in FIELDS
        if name.rpartition(".")[2] not in ("TokenStore", "Packing", "LossMask", "Spans")
    }
)


@pytest.mark.parametrize("field", OF_OPEN)
def test_an_option_given_to_open_itself_is_answered_with_its_class(field: str) -> None:
    message = f"open\\(\\) has no argument '{field}': write .*sk\\."
    with pytest.raises(sk.errors.InvalidArgument, match=message):
        sk.open("data.jsonl", **{field: None})


@pytest.mark.parametrize("name", sorted({*CLASSES, "sk.Workers"} - OTHERS))
def test_a_name_that_no_field_has_is_answered(name: str) -> None:
    kind: Any = sk.Workers if name == "sk.Workers" else CLASSES[name]
    real = dataclasses.fields(kind)[0].name
    with pytest.raises(
        sk.errors.InvalidArgument, match=rf"\(\) has no argument '{real}_': did you mean {real}="
    ):
        kind(**{f"{real}_": 1})
