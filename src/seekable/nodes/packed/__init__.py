"""Packed samples: the lengths of the rows that they are made of, and the nodes that make them."""
