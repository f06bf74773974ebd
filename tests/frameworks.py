"""The frameworks that tests import, and which test needs which: each runs in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FRAMEWORKS = (
    *(
        "accelerate",
        "dask",
        "grain",
        "jax",
        "lance",
        "lhotse",
        "lightning",
        "ray",
        "slurm",
        "streaming",
        "torch",
    ),
    *("transformers", "webdataset"),
)


def framework_of(path: Path) -> str | None:
    """Return the framework that all tests of a file import, or None.

    A module of a folder ``integrations`` whose name begins with a framework imports that framework. So does a
    module of a package there that has its name, and a module ``test_from_<framework>.py`` of ``tests/docs``.
    """
    folder = path.parent.name
    name = path.stem.removeprefix("test_from_" if folder == "docs" else "test_").partition("_")[0]
    if path.parent.parent.name == "integrations":
        folder, name = "integrations", folder  # a package for one framework
    return name if folder in {"integrations", "docs"} and name in FRAMEWORKS else None


def marker_name(path: Path) -> str | None:
    """Return the name of the marker that all tests of a file have, or None. ``make test`` leaves such out."""
    if framework_of(path):
        return "frameworks"
    return {"benchmarks": "bench", "examples": "demo"}.get(path.parent.name)
