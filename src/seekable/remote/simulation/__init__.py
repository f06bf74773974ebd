"""The transfers of a run over object stores, computed from its plan alone: nothing of the data is read."""
