"""Datasets under the loaders and trainers of other libraries: one module for each library."""
