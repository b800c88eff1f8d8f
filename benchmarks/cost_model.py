"""A model of what a job costs: product, selection, aggregation, transfer, each with few constants that are measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

STEPS = ("product", "selection", "aggregation", "transfer")
# Bytes of a number; features are float32.
_SIZE = 4
# Bytes of a certificate on its way back.
_CERTIFICATE = 64


@dataclass(frozen=True)
class Constants:
    """What is measured, for one core while all cores are busy.

    Attributes
    ----------
    per_flop, per_byte : float
        Seconds of the product for an operation, and for reading a byte of the training data once a block.
    per_weight, per_class : float
        Seconds of the selection for one test point: for each training sample, and for each class.
    per_voter_weight, per_vote : float
        Seconds of an ensemble for one test point: for each training sample, and for each voter and class.
    per_sent_byte, per_task : float
        Seconds to send a byte to a worker, and to hand out a task and take its result.
    """

    per_flop: float
    per_byte: float
    per_weight: float
    per_class: float
    per_voter_weight: float
    per_vote: float
    per_sent_byte: float
    per_task: float


@dataclass(frozen=True)
class Job:
    """Sizes: training samples, features, classes, test points, voters (1: one model), rows of a block."""

    n: int
    d: int
    K: int
    T: int
    voters: int
    block: int


@dataclass(frozen=True)
class Cluster:
    """Cores, cores of one machine, and bytes a second that shared storage gives to all machines together."""

    cores: int
    cores_each: int = 8
    storage: float = 10e9

    @property
    def machines(self) -> int:
        return max(1, self.cores // self.cores_each)


def product_terms(n: float, d: float, block: float) -> tuple[float, float]:
    """Operations of a block, and bytes of the training data that it reads."""
    return 2.0 * block * n * d, _SIZE * n * d


def fitted(terms: Sequence[Sequence[float]], times: Sequence[float]) -> tuple[NDArray[np.float64], float]:
    """Constants that are not negative, with the least relative error; and the root mean square of that."""
    relative = np.array(terms, np.float64) / np.array(times)[:, None]
    # Terms differ by many powers of ten.
    scale = relative.max(axis=0)
    constants, residual = nnls(relative / scale, np.ones(len(times)))
    return constants / scale, float(residual / math.sqrt(len(times)))


def constants_of(measured: dict[str, dict[str, Any]]) -> tuple[Constants, dict[str, float]]:
    """Fit all steps; and by how much each fit is off."""
    found, errors = {}, {}
    for step in STEPS:
        found[step], errors[step] = fitted(measured[step]["terms"], measured[step]["seconds"])
    return Constants(*(float(value) for step in found.values() for value in step)), errors


def predict(job: Job, cluster: Cluster, constants: Constants) -> dict[str, float]:
    """Seconds of each step. Computing is divided among the cores; what goes through one place is not."""
    blocks = math.ceil(job.T / job.block)
    # Cores without a block have nothing to do.
    rounds = math.ceil(blocks / cluster.cores)
    operations, read = product_terms(job.n, job.d, job.block)
    points = rounds * job.block
    steps = {"product": rounds * (operations * constants.per_flop + read * constants.per_byte)}
    if job.voters == 1:
        steps["selection"] = points * (job.n * constants.per_weight + job.K * constants.per_class)
        steps["aggregation"] = 0.0
    else:
        steps["selection"] = points * job.n * constants.per_voter_weight
        steps["aggregation"] = points * job.voters * job.K * constants.per_vote
    # Every machine reads the training data from shared storage once; rows and results pass through the client.
    loading = cluster.machines * _SIZE * job.n * job.d / cluster.storage
    passing = (_SIZE * job.T * job.d + _CERTIFICATE * job.T) * constants.per_sent_byte + blocks * constants.per_task
    steps["transfer"] = loading + passing
    return steps
