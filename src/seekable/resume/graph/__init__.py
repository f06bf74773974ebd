"""Going on by rows: what each source has given, what is left of its begun epoch, and what comes then."""
