"""The lookup of records by key: keys, their index, and the search for them."""
