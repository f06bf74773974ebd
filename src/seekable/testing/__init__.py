"""Tests for pipelines, formats, stages, holders, stores and executors of users; ours pass the same."""

from __future__ import annotations

from seekable.testing.executors import ExecutorTests
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
