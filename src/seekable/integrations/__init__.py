"""Datasets under the loaders and trainers of others: a module each, which needs that package installed."""
