"""The index of objects in stores: built by ranges, published beside the data, adopted from there."""
