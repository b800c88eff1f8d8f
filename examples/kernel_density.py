"""Weights of one's own: kernel density (Nadaraya and Watson), and who gave the labels."""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flipcert


class NadarayaWatson(flipcert.LabelLinearClassifier):
    """Every training row votes with a Gaussian of its distance."""

    def __init__(self, bandwidth=1.0, classes=None, n_jobs=None):
        self.bandwidth = bandwidth
        self.classes = classes
        self.n_jobs = n_jobs

    def fit_inputs(self, X):
        """Keep the training inputs."""
        self.X_ = X

    def weights(self, X):
        """Gaussians of the distances of each row to all training inputs."""
        exponents = cdist(X, self.X_, "sqeuclidean") / (2 * self.bandwidth**2)
        # A positive factor for a row changes no comparison: the nearest weighs 1, none vanishes.
        return np.exp(exponents.min(axis=1, keepdims=True) - exponents)

    def weight_rounding(self, X):
        """Distances are measured pair by pair: a row is the same to the bit in every block."""
        return np.zeros(len(X))


X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=360, random_state=0)
annotator = np.arange(len(y_train)) % 30

model = NadarayaWatson(bandwidth=0.8, classes=range(10)).fit(X_train, y_train, source=annotator)
print(f"accuracy: {model.score(X_test, y_test):.3f}")
flips = model.certify(X_test).median_certified_robustness(y_test)
print("half of the correct ones withstand", flips, "flips")
people = model.certify(X_test, threat="sources").median_certified_robustness(y_test)
print("and", people, "of 30 annotators, whatever they put on all their labels")

ensemble = flipcert.PartitionEnsemble(model, n_partitions=10, classes=range(10))
certificates = ensemble.fit(X_train, y_train).certify(X_test)
print("in a vote of ten:", certificates.median_certified_robustness(y_test), "flips")
