"""Losses found before, by the rows of a node: two cuts part the same rows in either order.

A table of fixed size; of two nodes that fall on one place the later one stays. A loss depends on
nothing but the rows and their order, whose numbers and what numbers them make the key, so the table
saves time and decides nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_ops.core.kernels.criteria import LEAN
from mondrian_ops.core.kernels.splitting import INLINE

QUICKLY, AHEAD = 0, 1  # how a node was finished

_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@njit(**LEAN)
def key_of(index, start, stop, way, work):
    """64 bits that tell a node's rows in their order, its block, and how it was finished."""
    key = np.uint64(2 * work.block[0] + way + 1) * _SPREAD
    for i in range(start, stop):
        key = (key ^ np.uint64(index[i] + 1)) * _MIX
        key ^= key >> np.uint64(32)
    return key


@njit(**INLINE)
def recall(key, work):
    """The loss that was remembered for a key; infinite without one."""
    place = np.int64(key & np.uint64(work.known_key.size - 1))
    return work.known_loss[place] if work.known_key[place] == key else np.inf


@njit(**INLINE)
def remember(key, loss, work):
    """Put the loss of a node into the table; below zero: it loses at least as much."""
    place = np.int64(key & np.uint64(work.known_key.size - 1))
    work.known_key[place] = key
    work.known_loss[place] = loss
