"""The rank of this process, and the number of ranks: as they were given, and as what surrounds it says."""

from __future__ import annotations

import os
import sys

from seekable._arguments import AT_ONCE, checked_count
from seekable.errors import AmbiguousRank, InvalidArgument

__all__ = ["checked_rank", "rank_around"]


def checked_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the rank of this process and the number of ranks, checked.

    Raises:
        AmbiguousRank: neither was given, and the environment, or an initialised torch.distributed, speaks of
            several.
        InvalidArgument: only one was given, or the rank is not below the number of ranks.
    """
    if rank is None and world_size is None:
        several = _ranks_around()
        if several:
            raise AmbiguousRank(
                f"{several}, and rank= and world_size= were left out: all would read the same records. "
                f"Write rank, world_size = sk.distributed() and pass rank=rank, world_size=world_size; "
                f"sk.distributed(mesh) where several ranks hold one copy of the model (tensor, pipeline or "
                f"context parallelism); or rank=0, world_size=1 where each rank is to read everything"
            )
        return 0, 1
    if rank is None or world_size is None:
        message = f"rank and world_size must be given together (got rank={rank!r}, world_size={world_size!r})"
        raise InvalidArgument(message)
    world_size = checked_count("world_size", world_size, least=1, below=AT_ONCE)
    rank = checked_count("rank", rank, least=0)
    if rank >= world_size:
        raise InvalidArgument(f"rank must be below world_size={world_size} (got {rank})")
    return rank, world_size


def rank_around() -> tuple[int, int]:
    """Return this process's rank and how many ranks there are, by torch or the environment; else ``(0, 1)``.

    Raises:
        AmbiguousRank: the environment names a number of ranks and not which of them this is, or no number.
    """
    return _of_torch() or _of_environment() or (0, 1)


def _ranks_around() -> str | None:
    """Return a text that says where several ranks are announced; None if there is one rank."""
    size = os.environ.get("WORLD_SIZE", "")
    if size.isdecimal() and int(size) > 1:
        return f"the environment says RANK={os.environ.get('RANK', '?')} of WORLD_SIZE={size}"
    ranks = _of_torch()
    if ranks is not None and ranks[1] > 1:
        return f"torch.distributed has {ranks[1]} ranks"
    return None


def _of_torch() -> tuple[int, int] | None:
    # torch is not imported here: if it is not imported already, it cannot be initialised.
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module.get_rank(), module.get_world_size()


def _of_environment() -> tuple[int, int] | None:
    rank, size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if size is None:
        return None
    numbers = [int(text) if text is not None and text.isdecimal() else -1 for text in (rank, size)]
    if not 0 <= numbers[0] < numbers[1]:
        said = " and ".join(
            f"{name}={text!r}" if text is not None else f"no {name}"
            for name, text in (("RANK", rank), ("WORLD_SIZE", size))
        )
        raise AmbiguousRank(
            f"the environment does not say which rank this is: it has {said}. RANK counts from 0 to "
            f"WORLD_SIZE - 1; set both, or neither, or pass rank= and world_size= yourself"
        )
    return numbers[0], numbers[1]
