"""Pure arithmetic on arrays of positions: it reads nothing, remembers nothing and imports nothing of ours.

Every function here that decides order is pinned by golden values: changing what one returns is a
breaking change, because a state saved before would continue in another order after.
"""
