"""Samples of one length, cut from the records of any dataset that has lists."""
