"""Datasets by the names that training scripts know them by: ``hf:REPO:SPLIT:COLUMN``, ``txt:PATH:COLUMN``."""
