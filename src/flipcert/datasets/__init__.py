"""Where data come from: data sets by name, files of features and labels."""

from flipcert.datasets.named import Dataset, load, names

__all__ = ["Dataset", "load", "names"]
