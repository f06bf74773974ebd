"""A store of S3 with any number of objects, which are never made: a million are listed in a second or two.

    python tests/remote/servers/many_keys_server.py OBJECTS [LATENCY_SECONDS]

Prints its port. Object 1,234,567 of any bucket is ``corpus/1234/1234567.jsonl`` with the line
``{"id": "1234567"}``. Serves ListObjectsV2 (prefix, delimiter, start-after, continuation-token, max-keys),
HEAD and GET with one range. ``GET /-/log`` returns the targets of all requests so far, and forgets them.
"""

from __future__ import annotations

import asyncio
import bisect
import json
import re
import sys
from urllib.parse import parse_qs, unquote, urlsplit

LAST = "\U0010ffff"
MODIFIED = "2026-01-01T00:00:00.000Z"
HTTP_MODIFIED = "Thu, 01 Jan 2026 00:00:00 GMT"
ENTRY = (
    "<Contents><Key>{}</Key><LastModified>"
    + MODIFIED
    + '</LastModified><ETag>"{}"</ETag><Size>18</Size></Contents>'
)


def key_of(number: int) -> str:
    return f"corpus/{number // 1000:04d}/{number:07d}.jsonl"


class Keys:
    """The answers of a store with so many objects."""

    def __init__(self, count: int) -> None:
        self._all = range(count)
        self._log: list[str] = []

    def answer(self, method: str, target: str, span: str | None) -> tuple[str, dict[str, str], bytes]:
        """Return the status, the headers and the body of the answer to a request."""
        if target == "/-/log":
            log, self._log = self._log, []
            return "200 OK", {}, json.dumps(log).encode()
        self._log.append(target)
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        _, _, key = unquote(parts.path).lstrip("/").partition("/")
        if "list-type" in query and not key:
            return "200 OK", {"content-type": "application/xml"}, self._page(query).encode()
        number = int(found[1]) if (found := re.search(r"(\d+)\.jsonl$", key)) else -1
        if number not in self._all or key != key_of(number):
            return "404 Not Found", {}, b"<Error><Code>NoSuchKey</Code></Error>"
        headers = {"etag": f'"{number:07d}"', "last-modified": HTTP_MODIFIED, "accept-ranges": "bytes"}
        body = b'{"id": "%07d"}\n' % number
        if found := re.fullmatch(r"bytes=(\d+)-(\d+)", span or ""):
            start, stop = int(found[1]), min(int(found[2]) + 1, len(body))
            headers["content-range"] = f"bytes {start}-{stop - 1}/{len(body)}"
            return "206 Partial Content", headers, body[start:stop]
        return "200 OK", headers, body

    def _page(self, query: dict[str, str]) -> str:
        prefix, most = query.get("prefix", ""), int(query.get("max-keys", "1000"))
        at = bisect.bisect_left(self._all, prefix, key=key_of)
        end = bisect.bisect_left(self._all, prefix + LAST, key=key_of)
        at = max(at, bisect.bisect_right(self._all, query.get("start-after", ""), key=key_of))
        at = max(at, int(query.get("continuation-token", "0")))
        found: list[str] = []
        while at < end and len(found) < most:
            key = key_of(at)
            inner, delimiter, _ = key[len(prefix) :].partition(query.get("delimiter") or "\0")
            if delimiter:
                found.append(f"<CommonPrefixes><Prefix>{prefix}{inner}/</Prefix></CommonPrefixes>")
                at = bisect.bisect_left(self._all, f"{prefix}{inner}/{LAST}", key=key_of)
            else:
                found.append(ENTRY.format(key, f"{at:07d}"))
                at += 1
        more = f"<NextContinuationToken>{at}</NextContinuationToken>" if at < end else ""
        head = f"<Name>any</Name><Prefix>{prefix}</Prefix><KeyCount>{len(found)}</KeyCount>"
        truncated = f"<IsTruncated>{str(at < end).lower()}</IsTruncated>"
        return f"<ListBucketResult>{head}{truncated}{more}{''.join(found)}</ListBucketResult>"


async def main(count: int, latency: float) -> None:
    keys = Keys(count)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                return
            method, target, _ = lines[0].split(" ")
            spans = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("range:")]
            await asyncio.sleep(latency)
            status, headers, body = keys.answer(method, target, spans[0] if spans else None)
            fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            head = f"HTTP/1.1 {status}\r\n{fields}content-length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + (b"" if method == "HEAD" else body))
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0))
