"""Streams: chains of stages whose order depends on what the records are.

This package exports what a stage of your own is made of; `seekable.stream.stage` has the rules.
"""

from seekable.stream.shapes import OneInput, SameItems, SameTokens
from seekable.stream.stage import Inner, Lane, LaneInput, Leaf, Stage
from seekable.stream.token import Token

__all__ = ["Inner", "Lane", "LaneInput", "Leaf", "OneInput", "SameItems", "SameTokens", "Stage", "Token"]
