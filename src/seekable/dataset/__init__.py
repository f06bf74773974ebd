"""Datasets: functions from positions to records, and what combines them.

``contract.py`` says what a node of the graph owes the others, ``forest.py`` evaluates many nodes at once,
``base.py`` is the public face; every other file is one concept.
"""
