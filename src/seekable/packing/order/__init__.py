"""Packed samples as arithmetic: the pieces of documents that each sample of each epoch is made of.

Every method here follows from the lengths of the documents, a seed and the epoch; no token is read, and no
method but the table makes anything for an epoch.
"""
