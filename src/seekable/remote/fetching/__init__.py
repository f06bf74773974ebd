"""Byte ranges of objects in stores: which requests to send, at which pace, and how often again.

The planner, the pace and the rules of hedging are pure functions and state machines; one event loop in a
thread of each process sends the requests.
"""
