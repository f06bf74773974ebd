"""Words that people type out of habit, and what to write here; each function that has some answers with them.

They are arguments of torch, torchdata, Hugging Face Datasets, Grain, WebDataset and others, and our own of
before. `seekable._arguments.explains_keywords` makes the errors.
"""

from __future__ import annotations

__all__ = [
    "BATCH_SAMPLER",
    "DATASET",
    "FILTER",
    "LOADER",
    "LOAD_STATE",
    "MAP",
    "MIX",
    "OPEN",
    "SAVE_STATE",
    "SHUFFLE",
    "STORAGE",
    "STREAM",
    "no_attribute",
]

STORAGE = {"storage_options": "storage=sk.Storage(options=...)", "fs": "storage=sk.Storage(filesystem=...)"}
"""Of all that writes to stores, or reads what was written there."""

_OF_ORDER = ("shuffle", "seed", "generator", "use_seedable_sampler")
_ORDER = "sk.Loader(ds.shuffle(seed=0), ...): the order is the dataset's"
_ROWS = "ds.select(rows) as the dataset for rows of your choice, ds.shuffle(seed=0) for a random order"
_LIVE_ON = "nothing: worker processes live on from run to run, until loader.close()"
_PIN = 'device="cuda": batches are pinned, and copied there ahead'

LOADER = {
    # torch, torchdata, Accelerate
    "num_workers": "workers=",
    **dict.fromkeys(_OF_ORDER, _ORDER),
    "sampler": _ROWS,
    "batch_sampler": "batch_size=; or sk.Loader(stream.bucket(...), batch_size=None) for like lengths",
    "drop_last": 'end="drop"',
    "collate_fn": "collate=",
    "pin_memory": _PIN,
    "pin_memory_device": _PIN,
    "persistent_workers": _LIVE_ON,
    "prefetch_factor": "prefetch=",
    "worker_init_fn": "nothing: ds.map(fn, rng=True, seed=0) has randomness that does not depend on workers",
    "multiprocessing_context": 'workers=sk.Workers(4, type="thread") for threads; processes are never forked',
    "in_order": "nothing: batches come in order with any number of workers",
    "snapshot_every_n_steps": "nothing: loader.state_dict() is exact after each batch",
    "num_replicas": "world_size=",
    "dispatch_batches": "global_batch_size=, rank= and world_size=: each rank reads its own records",
    "split_batches": "global_batch_size=, which is counted over all ranks",
    # JAX's Grain, tf.data, other loaders
    "worker_count": "workers=",
    "worker_buffer_size": "prefetch=",
    "read_options": "prefetch=",
    "operations": "sk.Loader(ds.map(fn), ...)",
    "transforms": "sk.Loader(ds.map(fn), ...)",
    "drop_remainder": 'end="drop"',
    "num_epochs": "epochs=",
    "max_epochs": "epochs=",
    "max_steps": "steps=",
    "buffer_size": "ds.shuffle(seed=0), which needs no buffer; or ds.stream().shuffle(buffer=9, seed=0)",
    "shuffle_buffer": "ds.shuffle(seed=0), which needs no buffer; or ds.stream().shuffle(buffer=9, seed=0)",
    "micro_batch_size": "global_batch_size=, which is counted over all ranks",
    "rampup_batch_size": "global_batch_size=[(0, 256), (1000, 512)], by step and not by samples",
    # Ours of before
    "worker_type": 'workers=sk.Workers(4, type="thread")',
    "timeout": "workers=sk.Workers(4, timeout=60)",
    "restart_workers": "workers=sk.Workers(4, restart=2)",
}

BATCH_SAMPLER = {
    **dict.fromkeys(_OF_ORDER, "BatchSampler(ds.shuffle(seed=0), ...): the order is the dataset's"),
    **{name: LOADER[name] for name in ("sampler", "drop_last", "num_replicas", "num_epochs", "max_steps")},
}

OPEN = {
    "split": "hf:REPO:SPLIT as the source, or ds.split({...}, seed=0)",
    "streaming": "ds.stream() of what is returned; no record is read before it is asked for",
    "shuffle": "ds.shuffle(seed=0)",
    "seed": "ds.shuffle(seed=0)",
    "num_workers": "sk.Loader(ds, workers=...), or index=sk.Index(jobs=...)",
    "num_proc": "index=sk.Index(jobs=...)",
    "batch_size": "sk.Loader(ds, batch_size=...), or ds.batch(...)",
    "data_files": "the files as the source",
    "data_dir": "the folder as the source",
    "path": "the path as the source, the first argument",
    "name": "hf:REPO:CONFIG/SPLIT as the source",
    "revision": "hf:REPO@REVISION:SPLIT as the source",
    "cache_dir": "index=sk.Index(folder=...) for the index; SEEKABLE_REMOTE_DIR for bytes of stores",
    "lines": 'format="jsonl", or "text"',
    "sep": 'format=sk.formats.Csv(delimiter="|")',
    "usecols": "columns=",
    "fs": "storage=sk.Storage(filesystem=...)",
    "filesystem": "storage=sk.Storage(filesystem=...)",
    "handler": "errors=, a function of the error that returns what to deliver instead",
    "shardshuffle": "ds.shuffle(seed=0)",
    "nodesplitter": "sk.Loader(ds, global_batch_size=..., rank=..., world_size=...)",
}

MIX = {
    "probabilities": "weights=",
    "probs": "weights=",
    "proportions": "weights=",
    "ratios": "weights=",
    "stopping_strategy": 'stop="first" (first_exhausted) or stop="all" (all_exhausted)',
    "stop_on_empty_dataset": 'stop="first" or stop="all"',
    "infinite": 'stop="never"',
    "datasets": "the datasets as the first argument, a list or a dict",
    "shuffle": "parts that are shuffled: sk.mix([a.shuffle(seed=1), b.shuffle(seed=1)], seed=0)",
    "length": "sk.mix(...).take(length)",
}

_KNOWN = "nothing: the loader knows its rank and its step"

SAVE_STATE = {
    "max_to_keep": "keep=",
    "keep_last": "keep=",
    "save_total_limit": "keep=",
    "path": "the folder as the first argument",
    "overwrite": "keep=, the number of saved states that stay",
    **STORAGE,
    **dict.fromkeys(("rank", "world_size", "step"), _KNOWN),
}

LOAD_STATE = {
    "step": "the path of one state of the folder as the first argument",
    "path": "the folder as the first argument",
    "strict": 'resume="rows", for a state of another pipeline over the same sources',
    "map_location": "nothing: a state has no tensors",
    **STORAGE,
    **dict.fromkeys(("rank", "world_size"), _KNOWN),
}

_RENAME = 'ds.rename({"old": "new"})'
_DROP = "ds.drop_columns([...])"
_SPLIT = 'ds.split({"train": 0.9, "test": 0.1}, seed=0)'
_COLUMN = "ds.map(fn, column=...)"

DATASET = {
    # Hugging Face Datasets
    "remove_columns": _DROP,
    "rename_column": _RENAME,
    "rename_columns": _RENAME,
    "column_names": "ds.columns",
    "features": "ds.schema",
    "num_rows": "len(ds)",
    "add_column": _COLUMN,
    "cast_column": 'ds.cast({"n": int})',
    "train_test_split": _SPLIT,
    "to_pandas": "ds.to_arrow().to_pandas()",
    "to_polars": "polars.from_arrow(ds.to_arrow())",
    "to_list": "list(ds)",
    "to_json": "ds.write_jsonl(folder)",
    "to_parquet": "ds.write_parquet(folder)",
    "save_to_disk": "ds.write_parquet(folder)",
    "to_iterable_dataset": "ds.stream()",
    "with_format": 'ds.batches("arrow", size=...), or sk.open(..., decode="numpy")',
    "set_format": 'ds.batches("arrow", size=...), or sk.open(..., decode="numpy")',
    "with_transform": "ds.map(fn)",
    # tables, Ray, tf.data, Grain
    "drop": _DROP,
    "head": "ds.take(n)",
    "with_column": _COLUMN,
    "with_columns": _COLUMN,
    "iter_batches": 'ds.batches("python", size=...)',
    "random_split": _SPLIT,
    "random_shuffle": "ds.shuffle(seed=0)",
    "flat_map": "ds.flatten(fn)",
    "prefetch": "sk.Loader(ds, prefetch=...)",
    "concatenate": "sk.concat([ds, other])",
    # Ours of before
    "alias": 'ds.rename({"old": "new"}, keep=True), or ds.map(fn, column="new")',
    "map_columns": 'ds.rename({"old-*": {"old": "new"}})',
    "filter_batches": "ds.filter(fn, size=256)",
    "merge": "sk.concat([ds, other], distinct=True)",
    "limit": "ds.take(n)",
    "fetch": "ds[[...]]; sk.Position(p) is a place in any epoch",
    "plan": "ds[[...]], or ds.locate([...])",
    "size": "len(ds)",
    "lengths": "sk.formats.token_lengths(ds)",
    "shapes": "sk.kaldi.shapes(ds)",
}
"""Methods and attributes of a dataset."""

_STREAM_BUFFER = (
    "ds.shuffle(seed=0) for a true shuffle without a buffer, or ds.stream().shuffle(buffer=, seed=)"
)

SHUFFLE = {
    **dict.fromkeys(("buffer_size", "bufsize", "initial", "buffer"), _STREAM_BUFFER),
    "shuffle_block_size": "window=, in blocks",
    "shuffle_seed": "seed=",
    "generator": "seed=",
    "rng": "seed=",
    "epoch": "ds.shuffle(seed=0).epoch(e); each epoch has an order of its own anyway",
    "keep_in_memory": "nothing: a shuffle takes no memory",
    "reshuffle_each_iteration": "fixed=True for one order; else each epoch has its own",
}

MAP = {
    "batched": "ds.map_batches(fn, size=)",
    "batch_size": "ds.map_batches(fn, size=)",
    "num_proc": "sk.Loader(..., workers=): a map runs when a record is read",
    "num_parallel_calls": "sk.Loader(..., workers=): a map runs when a record is read",
    "remove_columns": "ds.drop_columns([...])",
    "with_indices": "sk.zip([ds, sk.from_sequence(range(len(ds)), version=1)]).map(fn)",
    "input_columns": "ds.select_columns([...]).map(fn)",
    "load_from_cache_file": "nothing: nothing is cached, a map runs when a record is read",
    "fn_kwargs": "functools.partial(fn, ...)",
    "deterministic": "nothing: the order never depends on time",
}

FILTER = {
    "batched": "size=, and fn takes a list and returns a list",
    "batch_size": "size=, and fn takes a list and returns a list",
    "num_proc": "jobs=",
    "fn_kwargs": "functools.partial(fn, ...)",
    "load_from_cache_file": 'save="kept.u64"',
    "keep_in_memory": "nothing: kept rows take 8 bytes each",
}

_ON_DATA = "it on the dataset, before ds.stream()"

STREAM = {
    # Hugging Face Datasets
    **dict.fromkeys(
        ("remove_columns", "rename_column", "rename_columns", "cast_column", "select_columns"), _ON_DATA
    ),
    "column_names": "ds.columns of the dataset",
    "features": "ds.schema of the dataset",
    "set_epoch": "nothing: a stream goes on into the next epoch by itself; ds.stream(epochs=) bounds it",
    "map_batches": "st.batch(k).map(fn).flatten(list)",
    # WebDataset, torchdata, Grain, tf.data
    "with_epoch": "ds.stream(epochs=)",
    "with_length": "nothing: sk.Loader(st, steps=) bounds a run",
    "decode": "sk.open(..., decode=)",
    "select": "st.filter(fn)",
    "batched": "st.batch(k)",
    "unbatched": "st.flatten(list)",
    "unbatch": "st.flatten(list)",
    "flat_map": "st.flatten(fn)",
    "flatmap": "st.flatten(fn)",
    "compose": "st.then(stage)",
    "prefetch": "sk.Loader(st, prefetch=)",
    "slice": "st.skip(n).take(n)",
    "mix": "sk.mix([...], weights=[...], seed=0)",
    "to_tuple": "st.map(fn)",
    "bucket_by_sequence_length": "st.bucket(...)",
    "save_state": "sk.save_state(folder, loader), or iter(st).state_dict()",
    "state_dict": "it = iter(st), then it.state_dict(): a stream is a description, its iterator has a state",
    "load_state_dict": "it = iter(st), then it.load_state_dict(state)",
}


def no_attribute(owner: object, name: str, words: dict[str, str]) -> AttributeError:
    """Return the error for a missing attribute; it says what to write if the name is one of some words.

    Example:
        >>> str(no_attribute(3, "num_rows", {"num_rows": "len(ds)"}))
        "'int' object has no attribute 'num_rows': write len(ds)"
    """
    way = f": write {words[name]}" if name in words else ""
    message = f"{type(owner).__name__!r} object has no attribute {name!r}{way}"
    return AttributeError(message, name=name, obj=owner)
