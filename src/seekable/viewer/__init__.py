"""Web pages that show data, pipelines and states, read-only, on this machine."""
