"""
Images from embeddings
======================

An embedding that was learned without these labels, a model on top of it, and pictures
of what an attacker would do.

The embedding of real pictures would come from a network that was trained without these
labels. Here it is 30 principal components of scikit-learn's digits, so that everything
runs in seconds. What follows is the same for both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import flipcert

images, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    images / 16, y, test_size=360, random_state=0
)

embedding = PCA(30, whiten=False, random_state=0)
models = {
    "ridge, ReLU network": flipcert.KernelRidge(
        flipcert.kernels.NTK(activation="relu"), reg=1.0, classes=range(10)
    ),
    "label spreading": flipcert.LabelSpreading(classes=range(10)),
    "15 neighbours": flipcert.WeightedNeighbors(15, classes=range(10)),
    "kernel SVM, small C": flipcert.KernelSVM("rbf", classes=range(10)),
}
proven = {}
for name, model in models.items():
    pipeline = make_pipeline(embedding, model).fit(X_train, y_train)
    proven[name] = flipcert.certify(pipeline, X_test)
    accuracy = proven[name].correct(y_test).mean()
    median = proven[name].median_certified_robustness(y_test)
    print(f"{name:<20} {accuracy:.3f} right; half of these withstand {median} flips")

# %%
# Four exact answers for four models of the same 1,437 labels. Where classes are
# clusters, as they often are in embeddings, label spreading lets each prediction rest
# on many labels. The kernel SVM is far behind: the default width of its kernel is made
# for standardised features, and these spread less, so that digits look alike to it.

figure, axis = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
flips = np.arange(0, 51)
for name, certificates in proven.items():
    axis.step(
        flips, certificates.certified_accuracy(y_test, flips), where="post", label=name
    )
axis.set(xlabel="flipped labels", ylabel="certified accuracy", ylim=(0, 1))
axis.legend(frameon=False)
plt.show()

# %%
# Fragile and sturdy
# ------------------
#
# In the upper row are the digits that the fewest flips change, in the lower row those
# that withstand most. A small radius is a reason to look at a prediction, also if there
# is no attacker: it rests on few labels.

model = make_pipeline(embedding, models["label spreading"]).fit(X_train, y_train)
certificates = proven["label spreading"]
order = np.argsort(certificates.radius, kind="stable")
figure, axes = plt.subplots(2, 5, figsize=(7, 3.4), layout="constrained")
for axis, point in zip(axes.flat, [*order[:5], *order[-5:]], strict=True):
    axis.imshow(X_test[point].reshape(8, 8), cmap="gray_r")
    axis.set_title(
        f"{certificates.prediction[point]}: {certificates.radius[point]} flips",
        fontsize=13,
    )
    axis.axis("off")
plt.show()

# %%
# The attack, in pictures
# -----------------------
#
# On the left a digit; beside it the training pictures whose labels an attacker would
# change first, and to what. They look like the digit: this is where its prediction
# comes from.

point = order[40]
(attack,) = flipcert.worst_flips(model, X_test[[point]])
figure, axes = plt.subplots(1, 6, figsize=(7, 1.7), layout="constrained")
axes[0].imshow(X_test[point].reshape(8, 8), cmap="Blues")
axes[0].set_title(f"test: {certificates.prediction[point]}", fontsize=13)
for axis, index, new in zip(axes[1:], attack.indices, attack.labels, strict=False):
    axis.imshow(X_train[index].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"{y_train[index]} → {new}", fontsize=13)
for axis in axes:
    axis.axis("off")
plt.show()

model.fit(X_train, attack.apply(y_train))
print(
    f"no {certificates.radius[point]} flips change it; after these {len(attack)} it is",
    model.predict(X_test[[point]])[0],
)

# %%
# One attack on all of them
# -------------------------
#
# So far each point had an attack of its own, the worst for it alone. But there is one
# training set. A collective certificate counts how many predictions *one* attack can
# change.

collective = flipcert.certify_collectively(
    model.fit(X_train, y_train), X_test, [2, 5, 10, 20], y_test, time_limit=8
)
print(collective)
figure = collective.plot()

# %%
# "Point by point" counts all predictions that some attack of that size changes. One
# attack has to share its flips among them, and changes far fewer.
#
# Next: `several annotators <plot_4_annotators.html>`_.
