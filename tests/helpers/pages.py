"""Pages and their pictures as a reader finds them."""

from __future__ import annotations

import re
import struct
import zlib
from html.parser import HTMLParser

import numpy as np

VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """Elements, text and attributes of a page; refuses what is not closed."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.pieces, self.values = [], [], [], []
        self.feed(source)
        self.close()
        assert not self.open
        self.text = re.sub(r"\s+", " ", "".join(self.pieces))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.values += [value for _, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["script"], ["style"]):
            self.pieces.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def png_pixels(data):
    """Read a PNG back, by the book."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        name, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + size]
        assert struct.unpack(">I", data[place + 8 + size : place + 12 + size]) == (zlib.crc32(name + body),)
        chunks[name] = body
        place += 12 + size
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8
    channels = {0: 1, 2: 3}[kind]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape((height, width) if channels == 1 else (height, width, 3))
