"""Files of tokens as other tools write them: the same payload, and many ways to say where documents end."""
