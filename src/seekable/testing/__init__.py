"""Tests for pipelines, stages, holders and stores of users; those of seekable pass the same tests."""

from __future__ import annotations

from seekable.testing.holders import assert_holder
from seekable.testing.resume import assert_resumes_exactly
from seekable.testing.stages import StageTests
from seekable.testing.stores import StoreTests

__all__ = ["StageTests", "StoreTests", "assert_holder", "assert_resumes_exactly"]
