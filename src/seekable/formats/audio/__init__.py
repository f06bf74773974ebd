"""Audio: payloads as arrays, whole or in part, and arrays mixed."""
