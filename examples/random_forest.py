"""Weights of one's own: a totally random forest, whose splits never look at a label, certified exactly."""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

import flipcert


class RandomForestSmoother(flipcert.LabelLinearClassifier):
    """A forest of random trees: training rows in the leaf of a point share its vote equally."""

    def __init__(self, n_trees=100, max_depth=10, random_state=0, classes=None, n_jobs=None):
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.random_state = random_state
        self.classes = classes
        self.n_jobs = n_jobs

    def fit_inputs(self, X):
        """Grow the trees, and share each leaf among the training rows in it."""
        options = {"max_depth": self.max_depth, "random_state": self.random_state}
        self.forest_ = RandomTreesEmbedding(self.n_trees, **options)
        leaves = self.forest_.fit_transform(X)  # one column a leaf: 1 where a row falls into it
        self.shares_ = normalize(leaves, norm="l1", axis=0).T / self.n_trees

    def weights(self, X):
        """Shares of all training rows in the leaves that each row falls into."""
        return self.forest_.transform(X) @ self.shares_


X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=360, random_state=0)

model = RandomForestSmoother(classes=range(10)).fit(X_train, y_train)
certificates = model.certify(X_test)
print(f"accuracy: {model.score(X_test, y_test):.3f}")
print("half of the correct ones withstand:", certificates.median_certified_robustness(y_test))
accuracy = certificates.certified_accuracy(y_test, [5, 10])
print("certified accuracy at 5, 10 flips:", accuracy.round(3))

witness = model.worst_flips(X_test[:1])[0]
flipped = model.fit(X_train, witness.apply(y_train)).predict(X_test[:1])
print(f"{len(witness)} flips turn {certificates.prediction[0]} into {flipped[0]}")
