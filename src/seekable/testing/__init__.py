"""Tests for pipelines and stages of users; the nodes and stages of seekable pass the same tests."""

from __future__ import annotations

from seekable.testing.resume import assert_resumes_exactly
from seekable.testing.stages import StageTests

__all__ = ["StageTests", "assert_resumes_exactly"]
