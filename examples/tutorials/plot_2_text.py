"""
Text
====

Short texts, each with a label, and some of these labels may have been chosen to
mislead. How many would it take to change what is said of a new text? The texts are real
and already on your disk: docstrings of NumPy, SciPy and scikit-learn. Which of the
three does one come from?
"""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.signal
import scipy.stats
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.discovery import all_estimators, all_functions

import flipcert

things = {
    "numpy": [getattr(np, name) for name in dir(np) if not name.startswith("_")],
    "scipy": [
        getattr(own, name)
        for own in (scipy.linalg, scipy.signal, scipy.stats)
        for name in own.__all__
    ],
    "sklearn": [thing for _, thing in [*all_estimators(), *all_functions()]],
}
texts: dict[str, str] = {}
for library, own in things.items():
    for thing in own:
        # The first sentences, without the names that would give it away.
        beginning = (inspect.getdoc(thing) or "")[:400]
        text = re.sub(r"(?i)\b(numpy|np|scipy|sklearn|scikit-learn)\b", "", beginning)
        if (inspect.isroutine(thing) or inspect.isclass(thing)) and len(text) > 80:
            texts.setdefault(text, library)
X, y = np.array(list(texts), dtype=object), np.array(list(texts.values()))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=300, random_state=0)
for library in things:
    print(f"{np.sum(y_train == library)} texts of {library} to learn from")

# %%
# Words become features without a label
# -------------------------------------
#
# Words are counted and weighed by how rare they are, and 100 directions are kept;
# ``random_state`` makes the fit repeatable, which a certificate needs. None of the
# steps looks at a label. How many directions there should be, and how much
# regularisation, was settled beforehand: a search over labels that an attacker may have
# touched would void the proof.

words = make_pipeline(
    TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english"),
    TruncatedSVD(100, random_state=0),
    Normalizer(),
)
classes = ["numpy", "scipy", "sklearn"]
model = make_pipeline(
    words, flipcert.KernelRidge("linear", reg=1.0, classes=classes)
).fit(X_train, y_train)
certificates = flipcert.certify(model, X_test)
print(certificates.summary(y_test))

# %%
# Regularisation decides what a flip can do
# -----------------------------------------
#
# The more regularisation, the more texts a prediction rests on. Here it hardly costs
# accuracy. All of these radii are exact.

figure, axis = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
flips = np.arange(0, 61)
for reg in (0.1, 1.0, 10.0, 100.0):
    other = make_pipeline(
        words, flipcert.KernelRidge("linear", reg=reg, classes=classes)
    ).fit(X_train, y_train)
    proven = flipcert.certify(other, X_test)
    share = proven.certified_accuracy(y_test, flips)
    axis.step(flips, share, where="post", label=f"reg {reg:g}")
    median = proven.median_certified_robustness(y_test)
    print(
        f"reg {reg:>5g}: {share[0]:.3f} right; half of these withstand {median} flips"
    )
axis.set(xlabel="flipped labels", ylabel="certified accuracy", ylim=(0, 1))
axis.legend(frameon=False)
plt.show()

# %%
# Choosing ``reg`` from this figure would use the *test* labels. That is fine if these
# are your own. It is not if they come from the same hands as the training labels.
#
# Which texts would an attacker relabel?
# --------------------------------------
#
# The witness names them, the most influential first. If you audit labels, it is a
# reading list.

right = np.flatnonzero(certificates.prediction == y_test)
point = right[np.argsort(certificates.radius[right], kind="stable")[len(right) // 3]]
(attack,) = flipcert.worst_flips(model, X_test[[point]])
print(f"{certificates.prediction[point]}: {' '.join(X_test[point].split())[:70]} ...")
print(
    f"no {certificates.radius[point]} flips change it; {len(attack)} do, first of them:"
)
for index, new in list(zip(attack.indices, attack.labels, strict=True))[:4]:
    print(
        f"  {y_train[index]:>7} -> {new:<7} {' '.join(X_train[index].split())[:60]} ..."
    )

# %%
# Sentence embeddings work the same way: they are features of a network that never saw
# these labels. Put them in place of the first three steps. Next: `images
# <plot_3_images.html>`_.
