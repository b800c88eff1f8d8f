"""Another threat model: training features moved inside an l-infinity ball, labels untouched (clean-label attacks)."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flipcert

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=360, random_state=0)


def votes_and_costs(X_train, y_train, X_test, partition, epsilon):
    """Votes by sums of inner products; how many samples must move to change each."""
    votes, costs = [], []
    # A sample that moves by epsilon in every feature moves the score of its class by at most this.
    reach = epsilon * np.abs(X_test).sum(axis=1)[:, None]
    for part in np.unique(partition):
        own = [X_train[(partition == part) & (y_train == c)] for c in range(10)]
        scores = np.stack([X_test @ rows.sum(axis=0) for rows in own], axis=1)
        sizes = np.array([len(rows) for rows in own])
        votes.append(scores.argmax(axis=1))
        gap = scores.max(axis=1, keepdims=True) - scores
        moved = np.maximum(np.ceil(gap / reach * (1 - 1e-9)), 1)
        # Only samples of the class voted for and of the class to be reached matter.
        costs.append(np.where(moved > sizes[votes[-1]][:, None] + sizes, len(y_train) + 1, moved))
    return np.stack(votes, axis=1), np.stack(costs, axis=1)


# By row number: moving a sample must not move it to another partition.
partition = np.arange(len(y_train)) % 10
votes, costs = votes_and_costs(X_train, y_train, X_test, partition, epsilon=0.1)
radius = flipcert.ensemble_radius(votes, costs, n_labels=len(y_train))
print("moved samples withstood, white-box:", radius[:8])
print("moved samples withstood, black-box:", flipcert.blackbox_radius(votes, n_classes=10)[:8])
