"""Holders: how the objects of each type are read from Kaldi tables and files, and written.

`registry.py` finds a holder by its name; `holder.py` has the contract.
"""
