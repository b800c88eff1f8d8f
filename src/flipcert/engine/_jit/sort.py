"""Stable sorts of pairs. Compiled, and quick to compile, which numba's own sorts are not."""

from __future__ import annotations

from flipcert.engine._jit.room import zero_integers
from flipcert.engine.jit import compiled

# Whole numbers below this are sorted by counting.
_SMALL = 256


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


@compiled
def sort_small(key, tag, size, spare_key, spare_tag):
    """Sort pairs whose keys mostly are small whole numbers: by counting them, and the others as ``sort_pairs`` does."""
    if size < 16:
        sort_pairs(key, tag, size, spare_key, spare_tag)
        return
    heads = zero_integers(_SMALL + 2)
    for i in range(size):
        heads[min(key[i], _SMALL) + 1] += 1
    for k in range(_SMALL):
        heads[k + 1] += heads[k]
    n_small = heads[_SMALL]
    for i in range(size):
        k = min(key[i], _SMALL)
        spare_key[heads[k]] = key[i]
        spare_tag[heads[k]] = tag[i]
        heads[k] += 1
    for i in range(size):
        key[i] = spare_key[i]
        tag[i] = spare_tag[i]
    sort_pairs(key[n_small:], tag[n_small:], size - n_small, spare_key, spare_tag)
