"""A verifier of one's own: k nearest neighbours, alone and voting in a partition ensemble."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import flipcert


def is_robust(model, X, n_flips):
    """Whether the majority of the neighbours stays: each flip closes its lead by two."""
    votes = np.sort(model.predict_proba(X) * model.n_neighbors, axis=1).round()
    return votes[:, -1] - votes[:, -2] > 2 * n_flips


X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=360, random_state=0)

model = flipcert.FixedBudget(KNeighborsClassifier(15), is_robust).fit(X_train, y_train)
print("one model withstands:", model.certify(X_test).median_certified_robustness(y_test))

ensemble = flipcert.PartitionEnsemble(model, n_partitions=20).fit(X_train, y_train)
certificates = ensemble.certify(X_test)
print("the ensemble withstands:", certificates.median_certified_robustness(y_test))
right = certificates.prediction == y_test
print("its votes alone prove:", int(np.median(certificates.blackbox_radius[right])))
