"""Data files compared with their index; neither is changed."""
