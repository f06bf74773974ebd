"""Token stores, written a part at a time, with their settings and their ending."""
