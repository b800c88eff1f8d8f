"""The ten lines of the README: certify one model, then an ensemble, and show an attack that works."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flipcert

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16 - 0.5, y, test_size=360, random_state=0)

model = flipcert.KernelRidge(flipcert.kernels.NTK(activation="relu"), reg=1.0).fit(X_train, y_train)
certificates = model.certify(X_test)
print("radius of the first five:", certificates.radius[:5])
print("half of the correct ones withstand:", certificates.median_certified_robustness(y_test))
accuracy = certificates.certified_accuracy(y_test, [0, 5, 20])
print("certified accuracy at 0, 5, 20 flips:", accuracy.round(3))

witness = model.worst_flips(X_test[:1])[0]
flipped = model.fit(X_train, witness.apply(y_train)).predict(X_test[:1])
print(f"{len(witness)} flips turn {certificates.prediction[0]} into {flipped[0]}")
