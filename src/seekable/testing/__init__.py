"""Tests for pipelines, formats, stages, holders, stores and executors of users; ours pass the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._lazy import public_names

if TYPE_CHECKING:
    from seekable.testing.executor_tests import ExecutorTests
    from seekable.testing.formats import FormatTests
    from seekable.testing.holders import assert_holder
    from seekable.testing.resume import assert_resumes_exactly
    from seekable.testing.stages import StageTests
    from seekable.testing.stores import StoreTests

__all__ = [
    "ExecutorTests",
    "FormatTests",
    "StageTests",
    "StoreTests",
    "assert_holder",
    "assert_resumes_exactly",
]

_HOMES = {
    "ExecutorTests": "executor_tests",
    "FormatTests": "formats",
    "StageTests": "stages",
    "StoreTests": "stores",
    "assert_holder": "holders",
    "assert_resumes_exactly": "resume",
}
"""The module of each public name, below ``seekable.testing``."""

__getattr__ = public_names(__name__, _HOMES, below=__name__)
