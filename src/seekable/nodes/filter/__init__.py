"""Rows chosen by a function of their records."""
