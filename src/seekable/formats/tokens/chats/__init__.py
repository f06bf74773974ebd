"""Conversations as tokens, with a mask of what is trained on."""
