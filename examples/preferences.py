"""A certified reward model: the preference labels that an attacker would have to flip until B beats A."""

import numpy as np

import flipcert

rng = np.random.default_rng(0)
truth = rng.normal(size=16)  # the reward that people have in mind: a direction among features


def compare(n_pairs):
    """Features of pairs of answers, and which of the two somebody preferred, at times the worse."""
    a, b = rng.normal(size=(2, n_pairs, truth.size))
    prefers_a = rng.random(n_pairs) < 1 / (1 + np.exp(-(a - b) @ truth))
    return a, b, np.where(prefers_a, "A", "B")


a, b, preferred = compare(2_000)
person = rng.integers(100, size=2_000)  # who compared them

# A linear kernel without an intercept is odd: whoever swaps A and B gets the opposite answer.
# Both classes are given, since an attacker may leave one of them without a label.
reward = flipcert.KernelRidge("linear", reg=10.0, classes=["A", "B"])
reward.fit(a - b, preferred, source=person)

a_new, b_new, _ = compare(500)
better = np.where((a_new - b_new) @ truth > 0, "A", "B")
certificates, swapped = reward.certify(a_new - b_new), reward.certify(b_new - a_new)
print(f"agrees with the true reward: {np.mean(certificates.prediction == better):.3f}")
flips = certificates.median_certified_robustness(better)
print("flips that half of the right ones withstand:", flips)
print("the same for B against A:", np.array_equal(certificates.radius, swapped.radius))
by_people = reward.certify(a_new - b_new, threat="sources")
print("people out of 100:", by_people.median_certified_robustness(better))

# The best of eight answers stays the best until it loses to one of the others.
answers = rng.normal(size=(8, truth.size))
others = [np.delete(answers, i, axis=0) for i in range(8)]
best = next(i for i in range(8) if np.all(reward.predict(answers[i] - others[i]) == "A"))
against = answers[best] - others[best]
radii = reward.certify(against).radius
print(f"answer {best} is the best of eight, and no {radii.min()} flips change that")

duel = against[[radii.argmin()]]
witness = reward.worst_flips(duel)[0]
after = reward.fit(a - b, witness.apply(preferred)).predict(duel)
print(f"after {len(witness)} flips it loses: {after[0]} is preferred")
