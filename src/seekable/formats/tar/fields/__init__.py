"""Fields of samples: how the bytes of a member become a value, and how a value becomes bytes."""
