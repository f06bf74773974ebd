"""What a run over object stores will transfer, computed from its plan alone: nothing of the data is read."""
