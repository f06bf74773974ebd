"""Tar archives: their members, and the samples that members make. Payloads are not read here.

```text
ForwardBytes        the bytes of one archive, read from start to end (index/finder)
    |  walk         from header to header (header, pax): runs of members, checked 1,024 headers at a time
    v
Members             names, offsets and sizes
    |  samples      members to samples, by a rule for names
    v
Samples             what the index keeps: sample starts, key hashes, the table of members
```
"""
