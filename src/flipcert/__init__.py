"""How many training labels would an attacker have to flip to change this prediction? With a proof."""

from flipcert import kernels
from flipcert.certificates import Certificates
from flipcert.certify import certify
from flipcert.classifiers import (
    BoundedNetwork,
    FixedBudget,
    KernelRidge,
    KernelSVM,
    MilpSVM,
    SmoothedLinear,
    WeightedNeighbors,
)
from flipcert.ensemble import PartitionEnsemble, blackbox_radius, ensemble_radius
from flipcert.evaluation.metrics import certified_accuracy, median_certified_robustness
from flipcert.exceptions import CertificateError, UnsolvedError
from flipcert.flips import Witness, cheapest_flips, flip_costs

__version__ = "0.1.0"

__all__ = [
    "BoundedNetwork",
    "CertificateError",
    "Certificates",
    "FixedBudget",
    "KernelRidge",
    "KernelSVM",
    "MilpSVM",
    "PartitionEnsemble",
    "SmoothedLinear",
    "UnsolvedError",
    "WeightedNeighbors",
    "Witness",
    "blackbox_radius",
    "certified_accuracy",
    "certify",
    "cheapest_flips",
    "ensemble_radius",
    "flip_costs",
    "kernels",
    "median_certified_robustness",
]
