"""Tests for users' own pipelines: the ones that seekable's own nodes have to pass."""

from __future__ import annotations

from seekable.testing.resume import assert_resumes_exactly
from seekable.testing.stages import StageTests

__all__ = ["StageTests", "assert_resumes_exactly"]
