"""Base classifiers whose flip costs are known."""

from flipcert.classifiers.bounded_network import BoundedNetwork
from flipcert.classifiers.neighbors import WeightedNeighbors
from flipcert.classifiers.ridge import KernelRidge
from flipcert.classifiers.svm import KernelSVM

__all__ = ["BoundedNetwork", "KernelRidge", "KernelSVM", "WeightedNeighbors"]
