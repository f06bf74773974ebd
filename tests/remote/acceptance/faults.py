"""The faults of one request: those after which it is sent again, and those that last."""

from __future__ import annotations

from tests.remote.proxy import Fault

import seekable as sk

QUICK = {"timeout": 1.0}
"""Options of a store whose requests that hang are soon given up; a busy server answers within that time."""

PASSING = {
    "refused": Fault(status=503),
    "refused-for-a-while": Fault(status=503, retry_after=0),
    "too-many": Fault(status=429),
    "broken": Fault(status=500),
    "reset": Fault(reset_after=700),
    "reset-at-once": Fault(reset_after=0),
    "closed": Fault(close_after=700),
    "short": Fault(lie=13),
    "no-length": Fault(no_length=True),
    "hangs": Fault(hang=True),
    "hangs-in-the-body": Fault(hang_after=700),
}
"""What goes well when the request is sent again."""

LASTING = {
    "forbidden": (Fault(status=403), sk.errors.AccessDenied),
    "gone": (Fault(status=404), sk.DataNotFound),
    "other-etag": (Fault(etag='"another"'), sk.IndexStale),
    "refused": (Fault(status=503), sk.errors.Unreachable),
    "broken": (Fault(status=500), sk.errors.Unreachable),
    "short": (Fault(lie=13), sk.errors.Unreachable),
}
"""What does not, and the error that says so."""
