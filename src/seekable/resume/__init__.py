"""``resume="rows"``: what a run has consumed, what is left, and how a changed pipeline takes it over."""
