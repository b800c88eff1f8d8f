"""Data sets by name: digits, MNIST and CIFAR-10, and features in files."""

from paper.data.named import load, names
from paper.data.table import Dataset, Table

__all__ = ["Dataset", "Table", "load", "names"]
