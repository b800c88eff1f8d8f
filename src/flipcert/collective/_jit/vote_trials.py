"""What single flips do to votes on many points, for a search for attacks: nothing here has to be exact. Compiled.

The *margin* of a rival is how many votes it lacks to win. A voter that has not turned yet takes off a part of what it
would if it did: the share of its gap that is closed, to a power, so that a few voters almost turned are worth more
than many that were hardly moved.
"""

from __future__ import annotations

import numpy as np

from flipcert.engine.jit import compiled

_POWER = 2


@compiled
def voter_part(scores, gaps, winner, soft):
    """What a voter adds to the margins of all rivals, softly; its vote is returned."""
    vote = np.argmax(scores)
    most = 0.0
    for q in range(scores.size):
        soft[q] = 0.0
        if q != vote and gaps[q] > 0.0:
            closed = 1.0 - (scores[vote] - scores[q]) / gaps[q]
            soft[q] = min(max(closed, 0.0), 1.0) ** _POWER
            most = max(most, soft[q])
    for c in range(scores.size):
        if vote == winner:
            soft[c] = 1.0 - max(2.0 * soft[c], most)
        elif vote == c:
            soft[c] = -1.0
        else:
            soft[c] = -soft[c]
    return vote


@compiled
def point_worth(soft, votes, winner, scale, heat, nearly):
    """What a point counts for: 1 if it is changed, less the more votes are lacking."""
    lacking = np.inf
    for c in range(soft.size):
        if c != winner:
            if votes[winner] - votes[c] + (1 if winner < c else 0) <= 0:
                return 1.0
            lacking = min(lacking, soft[c])
    near = 1.0 - max(lacking, 0.0) / (8.0 * heat * scale)
    return nearly * near**8 if near > 0.0 else 0.0


@compiled
def set_label(scores, gaps, winner, p, weights, old, new, parts, now, soft, votes):
    """Make a flip of voter p: weights move from one class to another. Writes all that follows from it.

    Of shape (n_voters, n_points, ...): scores, gaps, parts, and now (the vote); of (n_points, n_classes): soft, votes.
    """
    for t in range(winner.size):
        scores[p, t, old] -= weights[t]
        scores[p, t, new] += weights[t]
        for c in range(scores.shape[2]):
            soft[t, c] -= parts[p, t, c]
        votes[t, now[p, t]] -= 1
        now[p, t] = voter_part(scores[p, t], gaps[p, t], winner[t], parts[p, t])
        votes[t, now[p, t]] += 1
        for c in range(scores.shape[2]):
            soft[t, c] += parts[p, t, c]


@compiled
def try_labels(
    scores, gaps, winner, voter, columns, old, new, parts, now, soft, votes, scale, weight, heat, nearly, out
):
    """Worth of all points after each of some flips, none of which is made; ``columns`` are their weights."""
    n_classes = scores.shape[2]
    own, part, total = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    count = np.empty(n_classes, np.int64)
    for k in range(voter.size):
        p = voter[k]
        worth = 0.0
        for t in range(winner.size):
            for c in range(n_classes):
                own[c] = scores[p, t, c]
            own[old[k]] -= columns[k, t]
            own[new[k]] += columns[k, t]
            vote = voter_part(own, gaps[p, t], winner[t], part)
            for c in range(n_classes):
                total[c] = soft[t, c] - parts[p, t, c] + part[c]
                count[c] = votes[t, c]
            count[now[p, t]] -= 1
            count[vote] += 1
            worth += weight[t] * point_worth(total, count, winner[t], scale[t], heat, nearly)
        out[k] = worth


@compiled
def vote_slopes(scores, gaps, winner, soft, votes, scale, weight, heat, out):
    """Write how much it helps, roughly, to lift each class of each voter on each point: (n_points, n_voters, K)."""
    n_classes = scores.shape[2]
    out[:] = 0.0
    for t in range(winner.size):
        a = winner[t]
        rival = -1
        for c in range(n_classes):
            if c != a and (rival < 0 or soft[t, c] < soft[t, rival]):
                rival = c
        if votes[t, a] - votes[t, rival] + (1 if a < rival else 0) <= 0:
            continue
        near = 1.0 - max(soft[t, rival], 0.0) / (8.0 * heat * scale[t])
        if not near > 0.0:
            continue
        slope = weight[t] * near**7 / scale[t]
        for p in range(scores.shape[0]):
            own = scores[p, t]
            vote = np.argmax(own)
            if vote == rival:
                continue
            to = rival
            gain = 1.0 / (own[vote] - own[rival] + 0.05 * gaps[p, t, rival] + 1e-300)
            if vote == a:
                gain *= 2.0
                for q in range(n_classes):
                    if q != a:
                        other = 1.0 / (own[vote] - own[q] + 0.05 * gaps[p, t, q] + 1e-300)
                        if other > gain:
                            gain, to = other, q
            rate = slope * gain
            if rate < np.inf:
                out[t, p, to] += rate
                out[t, p, vote] -= rate
