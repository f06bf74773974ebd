"""The graph of a dataset: the contract of nodes, how a graph is compiled, and one combinator a file."""
