"""
A table
=======

A table of numbers, one category, some cells that are empty, and a label: is this tumour
malignant? How many of the labels would have to be wrong, or bought, until a prediction
changes?

The measurements are scikit-learn's breast cancer data. Which hospital they come from,
and which cells are empty, is made up here, since most tables have both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import flipcert

data = load_breast_cancer(as_frame=True)
table, label = data.data, data.target_names[data.target]
rng = np.random.default_rng(0)
table = table.mask(rng.random(table.shape) < 0.02)
table["hospital"] = rng.choice(["north", "south", "harbour"], len(table))
X_train, X_test, y_train, y_test = train_test_split(
    table, label, test_size=200, random_state=0
)
X_train.iloc[:3, [0, 1, 2, -1]]

# %%
# From columns to features, without a label
# -----------------------------------------
#
# Median, category and scale are learned from the features alone. A certificate needs
# that: had a label been looked at, an attacker who flips it could have moved the
# features, too. ``flipcert.certify`` takes a pipeline apart and accepts only steps of
# which that is known.

numbers = table.columns[:-1].tolist()
columns = ColumnTransformer(
    [
        (
            "numbers",
            make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
            numbers,
        ),
        ("category", OneHotEncoder(), ["hospital"]),
    ]
)
classes = ["benign", "malignant"]
model = make_pipeline(
    columns, flipcert.KernelRidge("linear", reg=10.0, classes=classes)
)
model.fit(X_train, y_train)

# %%
# The certificate
# ---------------
#
# One line certifies all test points. In a notebook the result shows itself as a card.

certificates = flipcert.certify(model, X_test)
certificates

# %%
# With the true labels of the test points, it says what that is worth.

print(certificates.summary(y_test))

# %%
# The curve has the whole answer: for every size of attack, the share of test points
# that are right *and* proven to stay so. Its left end is the accuracy.

figure = certificates.plot(y_test)

# %%
# The radius is exact here: one flip more is known to suffice. Here is that attack on a
# prediction that is right but fragile, and what becomes of it when the model is fitted
# anew.

right = np.flatnonzero(certificates.prediction == y_test)
fragile = right[np.argsort(certificates.radius[right], kind="stable")[20]]
patient = X_test.iloc[[fragile]]
(attack,) = flipcert.worst_flips(model, patient)
print(
    f"no {certificates.radius[fragile]} flips change it; the attack has {len(attack)}"
)
before = model.predict(patient)[0]
model.fit(X_train, attack.apply(y_train))
print(f"before: {before}; after: {model.predict(patient)[0]}")

# %%
# What if nothing is scaled?
# --------------------------
#
# Areas are in the hundreds, smoothness in hundredths. Without scaling, the largest
# columns decide everything. The kernel SVM is a mean of kernels
# (:doc:`/docs/promises`), and suffers most: it calls every tumour malignant, and would
# be right more often if it called every one benign. A radius says nothing about
# accuracy: such a model may withstand many flips, or few, as here. Look at both.

scaled = ColumnTransformer(
    [("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers)]
)
raw = ColumnTransformer([("numbers", SimpleImputer(), numbers)])
figure, axis = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
flips = np.arange(0, 120)
for name, steps in {"standardised": scaled, "as given": raw}.items():
    for kind in (
        flipcert.KernelRidge("linear", reg=10.0, classes=classes),
        flipcert.KernelSVM("linear", classes=classes),
    ):
        other = make_pipeline(steps, kind).fit(X_train, y_train)
        proven = flipcert.certify(other, X_test)
        share = proven.certified_accuracy(y_test, flips)
        axis.step(flips, share, where="post", label=f"{type(kind).__name__}, {name}")
        benign = np.mean(proven.prediction == "benign")
        print(f"{type(kind).__name__}, {name}: {benign:.0%} are called benign")
axis.axhline(np.mean(y_test == "benign"), color="grey", linewidth=1, linestyle=":")
axis.text(
    118,
    np.mean(y_test == "benign") + 0.01,
    "one answer for all",
    ha="right",
    color="grey",
)
axis.set(xlabel="flipped labels", ylabel="certified accuracy", ylim=(0, 1))
axis.legend(frameon=False)
plt.show()

# %%
# Much the same without a line of Python, from two files (the columns of hospitals are
# standardised there, too):
#
# .. code-block:: sh
#
#    flipcert certify train.csv test.csv --label diagnosis --impute median \
#        --encode onehot --scale standard --model ridge --kernel linear --reg 10 \
#        --classes benign,malignant
#
# ``flipcert inspect train.csv test.csv`` names the options that these files need.
#
# Next: `text <plot_2_text.html>`_, or how to :doc:`choose a model
# </docs/howto/choose>`.
