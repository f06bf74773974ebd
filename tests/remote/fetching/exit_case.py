"""Ends while 64 requests hang.

python exit_case.py URL
"""

from __future__ import annotations

import sys
import time

import numpy as np

from seekable.remote.fetching.fetcher import fetcher
from seekable.remote.fetching.wants import ObjectRef, Wants
from seekable.remote.stores.object_store import Pin

REQUESTS = 64

refs = tuple(ObjectRef(f"{sys.argv[1]}/hang{number}", Pin(1000, 1)) for number in range(REQUESTS))
ahead = fetcher().ahead()
ahead.want(Wants(refs, np.arange(REQUESTS), *np.array([[0], [10]]).repeat(REQUESTS, axis=1)))
while fetcher().report().requests < REQUESTS:
    time.sleep(0)
