"""Peers that have a page: their modules, and the names that their page must have."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.docs.streaming_alone import streaming
from tests.docs.tables import rows_of, spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["PEERS", "Peer", "exists", "unknown_names"]

_PAGES = Path(__file__).parents[2] / "docs" / "from"


@dataclass(frozen=True, slots=True)
class Peer:
    """One library: where its names are, and what its users know of it."""

    modules: tuple[str, ...]
    """Modules in which the names of the table are looked up."""

    instances: dict[str, str] = field(default_factory=dict)
    """What a variable of the table is an instance of."""

    words: frozenset[str] = frozenset()
    """Names in the table that are files, attributes or variables."""

    framework: str | None = None
    """The marker of its tests; None if all tests have the package."""

    alone: bool = False
    """True if its import changes a process in ways that other tests notice."""

    expected: Callable[[], Iterable[str]] = list
    """The names that the table must have."""

    prepare: Callable[[], object] | None = None


def _classes_of(package: str) -> Iterator[str]:
    root = importlib.import_module(package)
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if inspect.isclass(value) and value.__module__ == found.name:
                yield name


def _methods_of(cls: type) -> Iterator[str]:
    return (name for name, value in vars(cls).items() if inspect.isfunction(value) and name[0] != "_")


def _arguments_of(called: Any) -> list[str]:
    return [name for name in inspect.signature(called).parameters if name != "self"]


def _of_forager() -> list[str]:
    made = importlib.import_module("data_forager.indexers.jsonl_indexer")
    tokenized = importlib.import_module("data_forager.indexers.tokenization_indexer")
    functions = [name for module in (made, tokenized) for name in vars(module) if name.startswith("create_")]
    return [*_classes_of("data_forager"), *functions]


def _of_kaldi_native_io() -> list[str]:
    table_types = importlib.import_module("kaldi_native_io.table_types")
    public = importlib.import_module("kaldi_native_io")
    defined = [*_public_names(table_types), *_public_names(public)]
    return [name for name in dict.fromkeys(defined) if hasattr(public, name)]


def _public_names(module: Any) -> Iterator[str]:
    """Yield the names of the functions and classes of a module that are its own, or compiled."""
    for name, value in vars(module).items():
        origin = str(getattr(value, "__module__", ""))
        if name[0] != "_" and callable(value) and "kaldi_native_io" in origin:
            yield name


# The names of kaldiio, from its documentation, and of the code of Kaldi. Neither is installed.
_OF_KALDI = """
    BaseFloatMatrixWriter RandomAccessBaseFloatMatrixReader SequentialBaseFloatMatrixReader
    Input InitKaldiInputStream InitKaldiOutputStream IsToken KaldiObjectHolder Output PeekToken
    RandomAccessTableReader RandomAccessTableReaderMapped ClassifyRspecifier ClassifyRxfilename
    ClassifyWspecifier ClassifyWxfilename ExpectPretty ExpectToken ReadBasicType ReadIntegerPairVector
    ReadIntegerVector ReadKaldiObject ReadScriptFile ReadToken SequentialTableReader TableWriter
    WriteBasicType WriteIntegerPairVector WriteIntegerVector WriteKaldiObject WritePretty WriteToken
    kaldiio
"""

# The names on Lhotse's page about indexed manifests.
_INDEXED_MANIFESTS = """
    IteratorNode LazyCutMixer LazyFilter LazyFlattener LazyIndexedManifestIterator LazyIndexedSharIterator
    LazyIteratorChain LazyIteratorMultiplexer LazyJsonlIterator LazyManifestIterator LazyMapper LazyRepeater
    LazySharIterator LazyShuffler SharWriter StatefulDataLoader _graph_origin attach_graph_origin filter
    from_file from_shar get_graph_origin has_constant_time_access indexed inner_token is_checkpointable
    is_indexed load_state_dict map maybe_attach_graph_origin mix mux normalize_graph_token outer_token
    resolve_iterator_source state_dict supports_graph_restore
"""


def _of_lhotse() -> list[str]:
    node = importlib.import_module("lhotse.lazy").IteratorNode
    for module in ("cut.set", "hf", "packed_lazy", "shar.readers", "dataset.webdataset"):
        importlib.import_module(f"lhotse.{module}")
    nodes = [node]
    for found in nodes:
        nodes.extend(found.__subclasses__())
    own = [found.__name__ for found in nodes if found.__module__.startswith("lhotse.")]
    samplers = importlib.import_module("lhotse.dataset.sampling").__all__
    return [*_INDEXED_MANIFESTS.split(), *own, *samplers]


def _of_datasets() -> list[str]:
    iterable = importlib.import_module("datasets").IterableDataset
    return list(_methods_of(iterable))


def _of_torch() -> list[str]:
    data = importlib.import_module("torch.utils.data")
    nodes = importlib.import_module("torchdata.nodes")
    # DataPipes are no longer developed; the rest is helpers of theirs, and types.
    left = {"DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "Stateful", "T"}
    names = {*data.__all__, *nodes.__all__} - left
    return [name for name in names if not re.search("datapipe|runtime|argument|deterministic|_Dataset", name)]


def _of_streaming() -> list[str]:
    module = importlib.import_module("streaming")
    arguments = [*_arguments_of(module.StreamingDataset), *_arguments_of(module.Stream)]
    names = [name for name in module.__all__ if name[0].isupper()]
    return sorted({*names, *arguments} - {"stream_name", "stream_config"})


def _of_webdataset() -> list[str]:
    module = importlib.import_module("webdataset")
    stages = _methods_of(module.FluidInterface)
    classes = [
        *("WebDataset", "DataPipeline", "WebLoader", "RandomMix", "RoundRobin", "ResampledShards"),
        *("TarWriter", "ShardWriter", "SimpleShardList", "Decoder", "associate"),
    ]
    return [*classes, *stages]


PEERS = {
    "forager": Peer(
        modules=(
            "data_forager.datasets.common",
            "data_forager.datasets.jsonl",
            "data_forager.datasets.tokens",
            "data_forager.datasets.tokens_with_aux",
            "data_forager.index_stores.common",
            "data_forager.index_stores.fs_based",
            "data_forager.indexers.jsonl_indexer",
            "data_forager.indexers.text_lines",
            "data_forager.indexers.tokenization_indexer",
            "data_forager.sample_generators.aux",
            "data_forager.sample_generators.common",
            "data_forager.sample_generators.schema",
            "data_forager.sample_generators.tokenization",
            "data_forager.sample_generators.tokenization_with_aux",
            "data_forager.sample_index",
            "data_forager",
        ),
        words=frozenset({"dataset", "index", "len", "sample_schema.json", "DataLoader", "unzip_files"}),
        alone=True,
        expected=_of_forager,
    ),
    "lhotse": Peer(
        modules=(
            "lhotse",
            "lhotse.lazy",
            "lhotse.indexing",
            "lhotse.index_pack",
            "lhotse.packed_lazy",
            "lhotse.cut",
            "lhotse.cut.set",
            "lhotse.hf",
            "lhotse.shar",
            "lhotse.shar.readers",
            "lhotse.checkpoint",
            "lhotse.dataset",
            "lhotse.dataset.sampling",
            "lhotse.dataset.iterable_dataset",
            "lhotse.dataset.dataloading",
            "lhotse.dataset.webdataset",
            "torchdata.stateful_dataloader",
        ),
        instances={"cuts": "CutSet", "sampler": "SimpleCutSampler"},
        words=frozenset({"lhotse", "cuts.jsonl.idx", "source", "_graph_origin", "pipe"}),
        framework="lhotse",
        expected=_of_lhotse,
    ),
    "datasets": Peer(
        modules=("datasets", "datasets.distributed"),
        instances={"ds": "IterableDataset"},
        words=frozenset({"for", "StatefulDataLoader"}),
        expected=_of_datasets,
    ),
    "torch": Peer(
        modules=("torch.utils.data", "torchdata", "torchdata.nodes", "torchdata.stateful_dataloader"),
        framework="torch",
        expected=_of_torch,
    ),
    "mosaicml-streaming": Peer(
        modules=("streaming",),
        framework="streaming",
        alone=True,
        expected=_of_streaming,
        prepare=streaming,
    ),
    "kaldi": Peer(
        modules=("kaldi_native_io",),
        instances={"reader": "SequentialFloatMatrixReader", "writer": "FloatMatrixWriter"},
        words=frozenset(_OF_KALDI.split()),
        expected=_of_kaldi_native_io,
    ),
    "webdataset": Peer(
        modules=("webdataset",),
        instances={"pipeline": "WebDataset"},
        words=frozenset({"pipe", "__key__", "__url__", "wids", "handler_function", "rgb8", "torchrgb"}),
        framework="webdataset",
        expected=_of_webdataset,
    ),
}


def unknown_names(page: str) -> dict[str, list[str]]:
    """Return the names in the first column that the peer lacks, and its names that the column lacks."""
    peer = PEERS[page]
    if peer.prepare is not None:
        peer.prepare()
    cells = [row.theirs for row in rows_of((_PAGES / f"{page}.md").read_text(encoding="utf-8"))]
    found = [span for cell in cells for span in spans(cell)]
    missing = [span for span in found if not exists(span, peer)]
    text = " ".join(cells)
    left_out = [name for name in peer.expected() if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    return {"not there": missing, "not in the table": sorted(set(left_out))}


def exists(span: str, peer: Peer) -> bool:
    """Return True for a name that resolves, with arguments that its signature has."""
    name = re.match(r"[A-Za-z_][\w.]*", span)
    if name is None or name[0].split(".")[0] in peer.words or name[0] in peer.words or span.endswith("="):
        return True
    value = _resolved(name[0], peer)
    if value is None:
        return False
    arguments = set(re.findall(r"(\w+)=", span))
    if not arguments:
        return True
    parameters = inspect.signature(value).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return takes_any or arguments <= parameters.keys()


def _resolved(dotted: str, peer: Peer) -> Any:
    """Return what a dotted name means in one of the modules, or None."""
    head, *rest = dotted.split(".")
    head = peer.instances.get(head, head)
    for module_name in peer.modules:
        module = importlib.import_module(module_name)
        value = getattr(module, head, None)
        for attribute in rest:
            value = getattr(value, attribute, None)
        if value is not None:
            return value
    return None
