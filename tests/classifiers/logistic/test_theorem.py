"""The identities that the bound rests on, and its terms, in numbers."""

from __future__ import annotations

import numpy as np
import pytest

from flipcert.classifiers.logistic.leverage import theta
from flipcert.classifiers.logistic.minimiser import minimise
from flipcert.classifiers.logistic.objective import Objective, softmax
from flipcert.classifiers.logistic.rounding import size
from flipcert.classifiers.logistic.spectrum import Spectrum


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def kl(p, q):
    return float(np.sum(p * np.log(p / q)))


def test_remainder_is_a_mixture_of_centred_scores(rng):
    for _ in range(200):
        K = rng.integers(2, 8)
        before, after = softmax(rng.normal(size=(2, K)) * 3)
        zeta = rng.normal(size=K)
        w = np.log(after / before)
        xi = np.exp(w) - 1 - w
        shift = w - before @ w  # what scores move, centred
        curvature = np.diag(before) - np.outer(before, before)
        centred = zeta - before @ zeta
        remainder = (after - before - curvature @ shift) @ zeta
        assert remainder == pytest.approx(np.sum(before * xi * centred), abs=1e-12)
        assert np.sum(before * xi) == pytest.approx(kl(before, after), abs=1e-12)


def test_the_equation_behind_the_bound(rng):
    """Step 3 of the proof, for any alpha, mu, nu: both sides agree for real refits."""
    for _ in range(20):
        n, d, K, penalty = 8, 3, 3, float(rng.uniform(0.5, 5))
        X, codes = rng.normal(size=(n, d)), rng.integers(0, 3, n)
        flipped = np.where(rng.random(n) < 0.4, rng.integers(0, K, n), codes)
        objective = Objective(X, penalty, K)
        here, there = minimise(objective, codes), minimise(objective, flipped)
        moved = (there.W - here.W).ravel()
        H = objective.hessian(here.P)
        # The gradients differ by what was flipped, and by what both fits left.
        attack = np.eye(K)[flipped].T @ X - np.eye(K)[codes].T @ X - here.gradient + there.gradient
        attack = attack.ravel()
        mu, nu, alpha = rng.uniform(0, 5, 3)
        U = rng.normal(size=K * d)
        V = np.linalg.solve(H + nu * np.eye(K * d), U)
        v = np.linalg.solve(H + mu * np.eye(K * d), attack)
        xi = there.P / here.P - 1 - np.log(there.P / here.P)

        def centred(direction, X=X, P=here.P, shape=(K, d)):
            scores = X @ direction.reshape(shape).T
            return scores - (P * scores).sum(axis=1, keepdims=True)

        back = sum(kl(q, p) for p, q in zip(here.P, there.P, strict=True)) + penalty / 2 * moved @ moved
        weights = alpha * (1 + centred(v)) - centred(V)
        right = attack @ V - alpha * attack @ v + alpha * back + np.sum(here.P * xi * weights)
        right += alpha * penalty / 2 * moved @ moved + moved @ (nu * V - alpha * mu * v)
        assert moved @ U == pytest.approx(right, abs=1e-12)


def test_theta_is_rounded_up():
    for x in (0.0, 1e-9, 1e-3, 0.3, 0.499999, 0.5, 1.0, 5.0, 50.0):
        y = np.longdouble(x)
        terms, total = np.longdouble(0.5), np.longdouble(0.5)
        for k in range(3, 400):
            terms = terms * y / k
            total += terms
        assert theta(x) >= total
        assert theta(x) == pytest.approx(float(total), rel=1e-12)
    assert theta(1e4) == np.inf


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 100.0])
def test_rounding_is_bounded(rng, scale, penalty):
    """Gradient, probabilities and Hessian in long doubles are within what doubles admit to be off."""
    n, d, K = 60, 4, 3
    X, codes = rng.normal(size=(n, d)) * scale, rng.integers(0, K, n)
    objective = Objective(X, penalty, K)
    state = minimise(objective, codes)
    long, W = X.astype(np.longdouble), state.W.astype(np.longdouble)
    scores = long @ W.T
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    weights = size(state.W)
    assert (np.abs(state.P / P - 1).max()) <= objective.error_of_probabilities(weights)
    gradient = (P - np.eye(K)[codes]).T @ long + penalty * W
    assert np.sqrt((gradient**2).sum()) <= objective.residual(state.W, state.P, codes) <= objective.goal
    spread = P[:, :, None] * np.eye(K) - P[:, :, None] * P[:, None]
    H = np.einsum("ikl,ia,ib->kalb", spread, long, long).reshape(K * d, K * d) + penalty * np.eye(K * d)
    computed = objective.hessian(state.P)
    off = objective.error_of_hessian(state.P, weights)
    assert np.sqrt(((H - computed) ** 2).sum()) <= off
    assert np.array_equal(computed, computed.T)
    spectrum = Spectrum.of(computed, off)
    E = spectrum.vectors.astype(np.longdouble)
    assert np.sqrt((((E * spectrum.values) @ E.T - H) ** 2).sum()) <= 3 * spectrum.distance
    assert spectrum.distance < 1e-6 * spectrum.values[-1]


def test_a_bad_decomposition_is_noticed(rng, monkeypatch):
    A = rng.normal(size=(8, 8))
    H = A @ A.T + np.eye(8)
    good = Spectrum.of(H, 0.0)
    exact = np.linalg.eigh
    noise = rng.normal(size=(8, 8)) * 1e-5

    def sloppy(matrix):
        values, vectors = exact(matrix)
        return values + 1e-5, vectors + noise

    monkeypatch.setattr(np.linalg, "eigh", sloppy)
    bad = Spectrum.of(H, 0.0)
    u, _, v = np.linalg.svd(bad.vectors)
    polar = u @ v
    assert np.linalg.norm(polar - bad.vectors, 2) <= bad.skew
    assert np.linalg.norm((polar * bad.values) @ polar.T - H, 2) <= bad.distance
    assert bad.distance > 1e-5 > good.distance
