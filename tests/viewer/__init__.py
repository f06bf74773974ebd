"""Tests of the viewer are a package, so that its browser is closed after the last one of them."""
