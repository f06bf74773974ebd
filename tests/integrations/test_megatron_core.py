"""The datasets of megatron-core itself, item by item: random blends, splits and epochs, and its caches."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests import tokens_apart
from tests.integrations.megatron_cases import BlendCase, equal_items, random_case, write_pair
from tests.integrations.test_megatron import RECORDED
from tests.thrift import some

import seekable as sk
from seekable.integrations.megatron import from_cache, gpt_datasets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.frameworks(name="torch")


class Tokenizer:
    """The attributes of a tokenizer that Megatron's datasets read."""

    vocab_size = 50_000
    eod = 0

    def __init__(self, pad: int | None) -> None:
        self.unique_identifiers = {"pad": pad}
        if pad is not None:
            self.pad = pad


@pytest.fixture(scope="module")
def core() -> Iterator[Any]:
    """Return the modules of megatron-core, in a process group of one process: blends with a cache want it."""
    import torch

    tokens_apart.add_to_path()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from megatron.core.datasets import blended_megatron_dataset_builder as builder
        from megatron.core.datasets import gpt_dataset
    logging.getLogger("megatron.core").setLevel(logging.ERROR)
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]  # it is there, and not exported
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield builder, gpt_dataset
    torch.distributed.destroy_process_group()


def theirs(core: Any, case: BlendCase, prefixes: list[str], cache: Path) -> dict[str, Any]:
    builder, gpt_dataset = core
    blend = (prefixes, case.weights)
    which = {"blend_per_split": [blend] * 3} if case.per_split else {"blend": blend, "split": case.split}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a pad token that is the end of documents
        config = gpt_dataset.GPTDatasetConfig(
            **which,
            random_seed=case.seed,
            sequence_length=case.length,
            path_to_cache=str(cache),
            tokenizer=Tokenizer(case.pad),
            reset_attention_mask=False,
            create_attention_mask=False,
            add_extra_token_to_sequence=case.extra,
            drop_last_partial_validation_sequence=not case.keep_last,
            **case.options,
        )
        made = builder.BlendedMegatronDatasetBuilder(
            gpt_dataset.GPTDataset, case.samples, lambda: True, config
        ).build()
    return {
        name: dataset
        for name, dataset in zip(("train", "valid", "test"), made, strict=True)
        if dataset is not None and len(dataset)
    }


def as_arrays(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, np.generic) else value.numpy() for name, value in item.items()}


def compare(core: Any, number: int, folder: Path) -> str:
    """Compare all items of a case, and return what it was."""
    case = random_case(number)
    prefixes = [write_pair(folder / f"c{number}-{i}", some) for i, some in enumerate(case.documents)]
    if case.never_returns():
        with pytest.raises(sk.errors.InvalidArgument):
            gpt_datasets(**case.ours(prefixes))
        return "never returns"
    cache = folder / f"cache{number}"
    try:
        expected = theirs(core, case, prefixes, cache)
    except (AssertionError, IndexError) as error:
        # An empty part of a blend, more draws than a part has, or an empty document at the end of the axis.
        try:
            gpt_datasets(**case.ours(prefixes))
        except sk.errors.InvalidArgument:
            return "refused by both"
        return f"refused by Megatron: {type(error).__name__}"
    found = gpt_datasets(**case.ours(prefixes))
    assert found.keys() == expected.keys()
    for name, dataset in found.items():
        assert len(dataset) == len(expected[name])
        items = list(dataset)
        for row, item in enumerate(items):
            assert equal_items(item, as_arrays(expected[name][row])), (number, name, row)
        if not (case.keep_last and name == "valid"):
            cached = from_cache(cache, split=name, **case.items())
            assert len(cached) == len(items)
            assert all(equal_items(cached[row], items[row]) for row in range(0, len(items), 7))
    return "equal"


def test_blends_have_the_items_of_megatron(core: Any, tmp_path: Path) -> None:
    assert [compare(core, number, tmp_path) for number in RECORDED] == ["equal"] * len(RECORDED)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(some(12)))
def test_hundreds_of_blends_have_the_items_of_megatron(core: Any, part: int, tmp_path: Path) -> None:
    found = [compare(core, number, tmp_path) for number in range(25 * part, 25 * part + 25)]
    assert found.count("equal") >= 15
