"""Streams: chains of stages whose order depends on what the records are.

What a stage of your own is made of can be imported from here; `seekable.stream.contract` has the rules.
"""

from seekable.stream.contract import Inner, Leaf, Stage, Token
from seekable.stream.flow import Flow
from seekable.stream.shapes import OneInput, SameItems, SameTokens

__all__ = ["Flow", "Inner", "Leaf", "OneInput", "SameItems", "SameTokens", "Stage", "Token"]
