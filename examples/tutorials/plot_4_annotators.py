"""
Several annotators
==================

Labels come from people. Whoever is one of them, or pays one, holds *all* labels of that
person. How many people would have to collude?

The annotators here are made up: 60 people label scikit-learn's digits, three labels a
picture, mostly right, and a few of them do most of the work, as in real crowds
(:doc:`/docs/crowd` has one of 747 people).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flipcert

X, y = load_digits(return_X_y=True)
X_train, X_test, truth, y_test = train_test_split(
    X / 16 - 0.5, y, test_size=360, random_state=0
)

rng = np.random.default_rng(0)
n_rows, n_people = len(truth), 60
busy = 1 / np.arange(1, n_people + 1)  # a few do most of the work
chosen = [
    rng.choice(n_people, 3, replace=False, p=busy / busy.sum()) for _ in range(n_rows)
]
row, person = np.repeat(np.arange(n_rows), 3), np.concatenate(chosen)
label = np.where(
    rng.random(row.size) < 0.9, truth[row], rng.integers(10, size=row.size)
)
most = np.bincount(person).max()
print(f"{row.size} labels by {n_people} people; the busiest gave {most}")
print(f"{np.mean(label != truth[row]):.1%} of them are wrong")

# %%
# Labels, or people?
# ------------------
#
# ``Annotations`` keeps all labels of all rows, and who gave them. The same fitted model
# answers both questions.

model = flipcert.KernelRidge("linear", reg=10.0, classes=range(10))
model.fit(X_train, flipcert.Annotations(row, label, source=person))
in_labels, in_people = model.certify(X_test), model.certify(X_test, threat="sources")
print(
    "half of the right predictions withstand",
    in_labels.median_certified_robustness(y_test),
    "flipped labels,",
)
print("but", in_people.median_certified_robustness(y_test), "corrupt people")

# %%
# A radius that looks comfortable in labels is broken by one busy person.
# ``source_powers`` tells how many test points each of them could change alone.

ids, counts, points = model.source_powers(X_test)
figure, axis = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
axis.scatter(counts, points / len(X_test), s=18)
axis.set(
    xlabel="labels that a person gave",
    ylabel="share of test points changed alone",
)
plt.show()

# %%
# Two remedies, both label-free
# -----------------------------
#
# *Capped weights*: beside others on the same picture, a label counts less if its giver
# has given many. Only the number of labels matters, not what they say, so no label is
# used.
#
# *Partitions by person*: there are ten voters with one vote each, and all labels of a
# person go to the same voter.

capped = flipcert.KernelRidge("linear", reg=10.0, classes=range(10))
capped.fit(X_train, flipcert.Annotations.capped(row, label, person, cap=20))
voters = flipcert.PartitionEnsemble(
    flipcert.KernelRidge("linear", reg=10.0), 10, partition="source", classes=range(10)
).fit(X_train, flipcert.Annotations(row, label, source=person))

figure, axis = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
people = np.arange(0, 13)
for name, own in {
    "equal weights": model,
    "capped at 20 labels": capped,
    "ten voters, by person": voters,
}.items():
    certificates = own.certify(X_test, threat="sources")
    share = certificates.certified_accuracy(y_test, people)
    median = certificates.median_certified_robustness(y_test)
    print(f"{name:<22} {share[0]:.3f} right; half of these withstand {median} people")
    axis.step(people, share, where="post", label=name)
axis.set(xlabel="people who collude", ylabel="certified accuracy", ylim=(0, 1))
axis.legend(frameon=False)
plt.show()

# %%
# Both remedies help, the ten voters most, and neither costs much accuracy here.
#
# **Accounts are not people.** Whoever holds several ids counts as several sources. If
# ids may belong together, give a coarser one (a vendor, a week of uploads), and the
# radius counts those.
#
# More threats: :doc:`/docs/threats`. Next: `a gate in a pipeline <plot_5_gate.html>`_.
