"""Listings of stores: folders of keys, globs over keys, and listings that are kept."""
