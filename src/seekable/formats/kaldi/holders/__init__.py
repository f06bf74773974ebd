"""Holders: how the objects of each type are read from tables and files, and written."""
