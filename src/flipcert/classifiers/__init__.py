"""Base classifiers whose flip costs are known."""

from flipcert.classifiers.fixed_budget import FixedBudget
from flipcert.classifiers.logistic.logistic_regression import LogisticRegression
from flipcert.classifiers.milp_svm.milp_svm import MilpSVM
from flipcert.classifiers.neighbors import WeightedNeighbors
from flipcert.classifiers.network.bounded_network import BoundedNetwork
from flipcert.classifiers.own_weights import LabelLinearClassifier
from flipcert.classifiers.ridge import KernelRidge
from flipcert.classifiers.smoothing.smoothed_linear import SmoothedLinear
from flipcert.classifiers.spreading import LabelSpreading
from flipcert.classifiers.svm import KernelSVM

__all__ = [
    "BoundedNetwork",
    "FixedBudget",
    "KernelRidge",
    "KernelSVM",
    "LabelLinearClassifier",
    "LabelSpreading",
    "LogisticRegression",
    "MilpSVM",
    "SmoothedLinear",
    "WeightedNeighbors",
]
