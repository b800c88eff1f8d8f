"""Where data come from: data sets by name, files of features and labels."""

from flipcert.datasets.named import Dataset, load, names
from flipcert.datasets.table import Table

__all__ = ["Dataset", "Table", "load", "names"]
