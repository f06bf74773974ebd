"""The faces of datasets: ``Dataset``, which holds one node, ``open``, and functions of several datasets.

The graph of nodes, which decides the records and their order, is ``seekable.nodes``.
"""
