"""Optional packages are imported on first use, and named where they are missing."""

from __future__ import annotations

import sys

import pytest

import seekable as sk
from seekable._optional import optional


def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = optional("pyarrow.parquet", extra="parquet")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pyarrow.parquet", None)
        with pytest.raises(
            sk.MissingDependency, match=r"needs pyarrow, .* pip install 'seekable\[parquet\]'"
        ):
            _ = proxy.ParquetFile
    assert proxy.ParquetFile.__name__ == "ParquetFile"  # once it is there, it is used


def test_nothing_is_imported_before_an_attribute_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    proxy = optional("colorsys", extra="all")
    assert "colorsys" not in sys.modules
    assert proxy.rgb_to_hsv is sys.modules["colorsys"].rgb_to_hsv


def test_an_attribute_that_a_module_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = optional("json", extra="all").no_such_name
