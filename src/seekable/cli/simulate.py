"""``seekable simulate``: what a run over object stores will transfer, cost and wait for."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.shared_options import DataOptions, Shown, argument, examples, option
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from seekable.cli.data_argument import DataArgument
    from seekable.dataset.dataset import Dataset
    from seekable.remote.simulation.simulation_figures import Simulation

EPILOG = examples(
    "simulate 'corpus/*.jsonl' --shuffle --nodes 8 --ranks 8 -G 1024 --records-per-second 20000",
    "simulate train.jsonl --window 16 --lanes 64 -G 1024 --records-per-second 2e4 --cache 1e11",
    "simulate train:make_dataset -G 256 --records-per-second 5000 --json | jq .cost",
)

_NETWORK = ("link", "latency", "connection", "get_price", "list_price", "byte_price")


def _count(*options: str, help_text: str, least: int = 1) -> Any:
    return typer.Option(*options, metavar="N", min=least, help=help_text)


def _number(option: str, metavar: str, help_text: str) -> Any:
    return typer.Option(option, metavar=metavar, min=0.0, help=help_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """The options that are arguments of ``sk.simulate``."""

    global_batch_size: Annotated[
        int, _count("--global-batch-size", "-G", help_text="Records in a batch over all ranks.")
    ]
    records_per_second: Annotated[
        float, _number("--records-per-second", "X", "What all ranks take while they need not wait.")
    ]
    nodes: Annotated[int, _count("--nodes", help_text="Machines.")] = 1
    ranks: Annotated[int, _count("--ranks", help_text="Ranks of each machine.")] = 1
    epochs: Annotated[int, _count("--epochs", help_text="Epochs.")] = 1
    cache: Annotated[
        float | None,
        _number("--cache", "BYTES", "The cache of a machine, 0 for none; as much as is needed if left out."),
    ] = None
    network: Annotated[
        list[str] | None,
        option(
            "--network",
            "NAME=VALUE",
            "link and connection in bytes a second, latency in seconds, get_price, list_price, byte_price, "
            "where they differ from S3's in its region; may be given several times.",
        ),
    ] = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of ``sk.simulate`` by name."""
        from seekable.cli.named_values import numbers_of

        cache = None if self.cache is None else round(self.cache)
        network = numbers_of("--network", _NETWORK, self.network)
        return {**asdict(self), "cache": cache, "network": network}


def simulate(
    target: Annotated[
        str,
        argument(
            "PIPELINE|DATA|MODULE:FUNCTION",
            "A pipeline file; a file, a folder or a quoted glob; or a function that returns a Dataset.",
        ),
    ],
    *,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Shuffle all of DATA.")] = False,
    window: Annotated[int | None, _count("--window", help_text="Shuffle in windows of N blocks.")] = None,
    lanes: Annotated[int | None, _count("--lanes", help_text="Shuffle in N lanes.")] = None,
    figures: RunFigures,
    data: DataOptions,
    shown: Shown,
) -> None:
    """Show what a run over object stores transfers and costs.

    Nothing of the data is read but its index. Local files count as if they were objects. The figures are of
    the order itself, for each machine; with the advice comes what each change gives.
    """
    from seekable.cli.data_argument import DataArgument
    from seekable.cli.output import write_document
    from seekable.remote.simulation.simulate import simulate as simulated

    order = {"window": window, "lanes": lanes}
    dataset = _dataset(DataArgument(target, data, shown), order, shuffle=shuffle)
    found = simulated(dataset, **figures.arguments)
    if shown.as_json:
        write_document(asdict(found))
    else:
        _print(found)


def _dataset(data: DataArgument, order: dict[str, int | None], *, shuffle: bool) -> Dataset:
    """Return the dataset of a target, in the order that the options say.

    Raises:
        InvalidArgument: ``--shuffle`` is given for what has an order.
        WrongType: a function returns something else.
    """
    from seekable.dataset.dataset import Dataset
    from seekable.dataset.pipeline.pipeline_file import is_pipeline_file
    from seekable.nodes.node import node_of
    from seekable.remote.simulation.simulate import DEFAULT_WINDOW, reshuffled
    from seekable.viewer.facts.pipelines import made_by

    target = data.path
    if _is_function(target):
        made = made_by(target)
        if not isinstance(made, Dataset):
            raise WrongType(f"{target} must return a Dataset (got {type(made).__name__})")
    elif is_pipeline_file(target):
        data.refuse_options()
        made = Dataset(data.order())
    else:
        made = data.dataset()
        if any(order.values()):
            window = order["window"] or DEFAULT_WINDOW
            return made.shuffle(0, window=window, lanes=order["lanes"])
        return made.shuffle(0) if shuffle else made
    if shuffle:
        raise InvalidArgument(f"--shuffle is for data, and {target!r} has an order of its own: leave it out")
    return Dataset(reshuffled(node_of(made), **order))


def _is_function(target: str) -> bool:
    """Return True if a target is ``module:function`` of a module that is there, and no file or address."""
    module = target.partition(":")[0]
    is_name = module.replace(".", "").isidentifier() and ":" in target and "://" not in target
    return is_name and not os.path.exists(target) and _has_module(module)


def _has_module(name: str) -> bool:
    """Return True if there is such a module in the working folder or on Python's path."""
    import importlib.util

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _print(found: Simulation) -> None:
    from seekable.cli.output import write_facts, write_line, write_table

    write_facts(_facts(found))
    write_line("")
    write_table(
        ["epoch", "bytes a node", "most", "requests a node", "times the data", "hits %"],
        [_epoch_row(epoch) for epoch in found.epochs],
    )
    for line in found.advice:
        write_line(f"\nadvice: {line}")


def _epoch_row(epoch: Any) -> list[str]:
    from seekable.storage.memory import bytes_in_words

    return [
        f"{epoch.epoch}",
        bytes_in_words(epoch.bytes),
        bytes_in_words(epoch.most_bytes),
        f"{epoch.requests:,}",
        f"{epoch.share:.3f}",
        f"{100 * epoch.hit_ratio:.1f}",
    ]


def _facts(found: Simulation) -> dict[str, str]:
    from seekable.storage.memory import bytes_in_words

    how = "every position resolved" if found.is_exact else "from a sample of the positions"
    return {
        "data": f"{found.records:,} records, {bytes_in_words(found.data_bytes)}; {how}",
        "transferred": f"{bytes_in_words(found.bytes)} in {found.requests:,} requests, all nodes",
        "requests": f"{found.requests_a_second:,.1f} a second to one folder, of all nodes",
        "cache": f"{100 * found.hit_ratio:.1f} % hits, {bytes_in_words(found.peak_disk_bytes)} on a disk",
        "first batch": f"after {found.first_batch_seconds:.2f} s",
        "waiting": f"{found.stalls:,} times, {found.stall_seconds:,.1f} s of {found.seconds:,.1f} s",
        "link": f"{100 * found.link_use:.1f} % used",
        "cost": f"{found.cost:,.4f}",
        "nearness": (
            f"{found.blocks_in_batch:,.0f} blocks in a batch, {100 * found.neighbours:.2f} % of neighbours "
            f"in one block, mean jump {found.mean_jump:.2f}"
        ),
    }
