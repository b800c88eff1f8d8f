"""What a random check of labels proves: how many wrong ones remain, and which predictions do not depend on them."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flipcert

X, right = load_digits(return_X_y=True)
X_train, X_test, right, _ = train_test_split(X / 16, right, test_size=360, random_state=0)
rng = np.random.default_rng(0)
wrong = rng.choice(1437, 8, replace=False)  # nobody knows which
labels = right.copy()
labels[wrong] = 9 - labels[wrong]

drawn = rng.permutation(1437)[:500]  # somebody who knows looks at 500 labels
found = int(np.sum(labels[drawn] != right[drawn]))
labels[drawn], trusted = right[drawn], np.isin(np.arange(1437), drawn)
remaining = flipcert.wrong_labels_at_most(1437, 500, found, confidence=0.95) - found

model = flipcert.KernelRidge("linear", reg=10.0).fit(X_train, labels, trusted=trusted)
certificates = model.certify(X_test)
proven = certificates.radius >= remaining
print(f"{found} wrong labels found; at most {remaining} remain")
print(f"{proven.sum()} of the 360 predictions are those of entirely right labels")
of_right = model.fit(X_train, right).predict(X_test)
print("are they?", (certificates.prediction == of_right)[proven].all())
