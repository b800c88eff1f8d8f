"""A stable sort of pairs. Compiled, and quick to compile, which numba's own sorts are not."""

from __future__ import annotations

from flipcert.engine.jit import compiled


@compiled
def sort_pairs(key, tag, size, spare_key, spare_tag):
    """Sort the first ``size`` pairs by key, smallest first, equal keys in the order they came (merge sort)."""
    width = 1
    while width < size:
        for begin in range(0, size, 2 * width):
            left, middle = begin, min(begin + width, size)
            right, end = middle, min(begin + 2 * width, size)
            for to in range(begin, end):
                if left < middle and (right == end or key[left] <= key[right]):
                    spare_key[to] = key[left]
                    spare_tag[to] = tag[left]
                    left += 1
                else:
                    spare_key[to] = key[right]
                    spare_tag[to] = tag[right]
                    right += 1
        for i in range(size):
            key[i] = spare_key[i]
            tag[i] = spare_tag[i]
        width *= 2
