"""Samples of one length, made of pieces of the records of any dataset that has lists."""
