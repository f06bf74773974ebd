"""``seekable cache``: shows and removes what was fetched from object stores and kept on disk."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seekable.cli.shared_options import Command, Shown, command, examples
from seekable.errors import DataNotFound, InvalidArgument

if TYPE_CHECKING:
    from seekable.remote.cache.disk_cache import DiskCache
    from seekable.remote.cache.disk_room import CachedObject

EPILOG = examples("cache ls", "cache rm s3://bucket/corpus")

LS_EPILOG = examples(
    "cache ls",
    "cache ls s3://bucket/corpus            objects of one folder",
    "cache ls '*.parquet'",
    "cache ls --json | jq .used_bytes",
)

RM_EPILOG = examples(
    "cache rm s3://bucket/corpus/a.jsonl",
    "cache rm s3://bucket/corpus            all objects of one folder",
    "cache rm 's3://bucket/*.parquet'",
    "cache rm --all",
)

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_HELP = "Of an object, of a folder, or a quoted pattern."


@app.callback(epilog=EPILOG)
def _cache() -> None:
    """Show or remove what is kept of remote data.

    The cache lies in SEEKABLE_REMOTE_DIR, else in the user's cache folder. Its limit is
    SEEKABLE_REMOTE_BYTES, else half of what was free when the folder was made. Datasets that were opened
    with cache= have folders and limits of their own in it. Jobs that run may go on while objects are removed.
    """


@app.command(name="ls", epilog=LS_EPILOG, cls=Command)
@command
def list_objects(
    addresses: Annotated[
        list[str] | None, typer.Argument(metavar="ADDRESS", help=_HELP, show_default=False)
    ] = None,
    *,
    shown: Shown,
) -> None:
    """Show the objects of which some bytes are on disk.

    KEPT is the bytes of the object that are on disk, and USED the time since they were last used.
    """
    from seekable.cli.output import write_document, write_facts, write_line, write_table
    from seekable.remote.cache.disk_cache import disk_caches
    from seekable.remote.cache.disk_room import is_chosen

    shared, *own = ((cache, cache.contents()) for cache in disk_caches())
    own = [(cache, objects) for cache, objects in own if objects]
    found = (each for _, objects in (shared, *own) for each in objects)
    everything = sorted(found, key=lambda each: each.address)
    chosen = [each for each in everything if not addresses or is_chosen(each.address, addresses)]
    if addresses:
        _refuse_none(chosen, addresses)
    if shown.as_json:
        caches = {**_cache_as_json(*shared), "own": [_cache_as_json(*each) for each in own]}
        write_document({**caches, "objects": [_as_json(each) for each in chosen]})
        return
    write_facts({"folder": shared[0].folder, "used": _used_in_words(*shared)})
    for each in own:
        write_facts({"cache of a dataset": each[0].folder, "used": _used_in_words(*each)})
    if chosen:
        write_line("")
        write_table(
            ["object", "size", "kept", "%", "used"], [_row(each, int(time.time())) for each in chosen]
        )


@app.command(name="rm", epilog=RM_EPILOG, cls=Command)
@command
def remove_objects(
    addresses: Annotated[
        list[str] | None, typer.Argument(metavar="ADDRESS", help=_HELP, show_default=False)
    ] = None,
    *,
    all_objects: Annotated[bool, typer.Option("--all", help="Remove all objects.")] = False,
    shown: Shown,
) -> None:
    """Remove objects from the cache; the stores keep them.

    The exit code is 4 if no object fits.
    """
    from seekable.cli.output import write_document, write_line
    from seekable.remote.cache.disk_cache import disk_caches
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.json_documents import in_words

    if bool(addresses) == all_objects:
        raise InvalidArgument("name the objects to remove, or give --all, but not both")
    patterns = ["*"] if all_objects else addresses or []
    removed = [each for cache in disk_caches() for each in cache.remove(patterns)]
    if addresses:
        _refuse_none(removed, addresses)
    size = sum(each.disk_bytes for each in removed)
    if shown.as_json:
        write_document({"objects": [_as_json(each) for each in removed], "removed_bytes": size})
    else:
        write_line(f"removed {in_words(len(removed), 'object')}, {bytes_in_words(size)}")


def _cache_as_json(cache: DiskCache, objects: list[CachedObject]) -> dict[str, Any]:
    used = sum(each.disk_bytes for each in objects)
    return {"folder": cache.folder, "limit_bytes": cache.most_bytes, "used_bytes": used}


def _used_in_words(cache: DiskCache, objects: list[CachedObject]) -> str:
    from seekable.storage.memory import bytes_in_words

    used, limit = sum(each.disk_bytes for each in objects), cache.most_bytes
    return f"{bytes_in_words(used)} of {'half of the free disk' if limit is None else bytes_in_words(limit)}"


def _refuse_none(objects: list[CachedObject], addresses: list[str]) -> None:
    """Refuse addresses that no object has.

    Raises:
        DataNotFound: there is no object.
    """
    from seekable.remote.cache.disk_cache import remote_folder

    if not objects:
        raise DataNotFound(
            f"nothing of {', '.join(addresses)} is in {remote_folder()!r}; `seekable cache ls` shows what is"
        )


def _row(each: CachedObject, now: int) -> list[str]:
    from seekable.storage.memory import bytes_in_words
    from seekable.viewer.facts.json_documents import json_safe

    share = 100 * each.kept_bytes / each.size if each.size else 100.0
    age = "never" if not each.used else "needed now" if each.is_needed else _time_in_words(now - each.used)
    sizes = (bytes_in_words(each.size), bytes_in_words(each.kept_bytes))
    return [json_safe(each.address), *sizes, f"{share:.0f}", age]


def _time_in_words(seconds: int) -> str:
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds // unit} {name} ago"
    return "now"


def _as_json(each: CachedObject) -> dict[str, Any]:
    from seekable.viewer.facts.json_documents import json_safe

    return {
        "address": json_safe(each.address),
        "etag": each.etag,
        "size": each.size,
        "kept_bytes": each.kept_bytes,
        "disk_bytes": each.disk_bytes,
        "used": each.used,
        "is_needed": each.is_needed,
    }
