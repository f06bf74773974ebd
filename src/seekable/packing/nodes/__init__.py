"""Packed samples: their nodes, plans and columns; ``lengths/`` has the lengths that all follows from."""
