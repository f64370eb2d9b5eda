"""A PDF as Chromium writes it, in half of its bytes: equal streams once, small objects in compressed streams.

Only what Chromium writes is read: one table of offsets, objects without generations, no encryption.
"""

import re
import struct
import zlib

REFERENCE = re.compile(rb"(?<![\d.])(\d+) 0 R\b")
OBJECT = re.compile(rb"(\d+) 0 obj\s*")


def packed(content: bytes) -> bytes:
    """The same document, smaller."""
    start = int(content[content.rindex(b"startxref") + 9 :].split()[0])
    trailer = content[content.index(b"trailer", start) + 7 : content.rindex(b"startxref")].strip()
    lines = re.findall(rb"^\d{10} 00000 n", content[start:], re.MULTILINE)
    offsets = sorted(int(line[:10]) for line in lines)
    objects: dict[int, bytes] = {}
    for begin, end in zip(offsets, [*offsets[1:], start], strict=True):
        head = OBJECT.match(content, begin)
        objects[int(head[1])] = content[head.end() : content.rindex(b"endobj", begin, end)].strip()
    while merged := _equal_streams(objects):
        objects = {number: _renamed(body, merged) for number, body in objects.items() if number not in merged}
    return _written(objects, trailer)


def _equal_streams(objects: dict[int, bytes]) -> dict[int, int]:
    """Numbers of streams that repeat another → its number."""
    first: dict[bytes, int] = {}
    return {
        number: kept
        for number, body in objects.items()
        if b"stream" in body and (kept := first.setdefault(body, number)) != number
    }


def _renamed(body: bytes, merged: dict[int, int]) -> bytes:
    """An object that refers to what is kept; what follows ``stream`` are data."""
    own, stream, data = body.partition(b"stream\n")
    found = REFERENCE.sub(lambda one: b"%d 0 R" % merged.get(int(one[1]), int(one[1])), own)
    return found + stream + data


def _written(objects: dict[int, bytes], trailer: bytes) -> bytes:
    out, places = bytearray(b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n"), {0: (0, 0, 65535)}
    last = max(objects)
    small = [number for number, body in objects.items() if b"stream\n" not in body]
    groups = [small[at : at + 200] for at in range(0, len(small), 200)]
    for number, group in enumerate(groups, last + 1):
        bodies = [objects.pop(each) + b" " for each in group]
        starts = [sum(map(len, bodies[:at])) for at in range(len(bodies))]
        head = b" ".join(b"%d %d" % pair for pair in zip(group, starts, strict=True)) + b" "
        about = b"/Type /ObjStm /N %d /First %d" % (len(group), len(head))
        objects[number] = _stream(about, head + b"".join(bodies))
        places |= {each: (2, number, at) for at, each in enumerate(group)}
    for number, body in objects.items():
        places[number] = (1, len(out), 0)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    own = last + len(groups) + 1
    places[own] = (1, len(out), 0)
    table = b"".join(struct.pack(">BIH", *places.get(number, (0, 0, 0))) for number in range(own + 1))
    root = b" ".join(re.findall(rb"/(?:Root|Info) \d+ 0 R", trailer))
    about = b"/Type /XRef /W [1 4 2] /Size %d %b" % (own + 1, root)
    last_object = b"%d 0 obj\n%b\nendobj\n" % (own, _stream(about, table))
    return bytes(out) + last_object + b"startxref\n%d\n%%%%EOF\n" % len(out)


def _stream(about: bytes, data: bytes) -> bytes:
    short = zlib.compress(data, 9)
    return b"<<%b /Filter /FlateDecode /Length %d>>\nstream\n%b\nendstream" % (about, len(short), short)
