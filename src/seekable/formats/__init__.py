"""The formats: one file each for how its records are found, and how they are decoded."""
