"""Partition ensembles: how the training set is cut, how the parts vote, and what it takes to change the outcome."""

from flipcert.ensemble.partition import assign_partitions
from flipcert.ensemble.partition_ensemble import PartitionEnsemble
from flipcert.ensemble.votes.radius import blackbox_radius, ensemble_radius

__all__ = ["PartitionEnsemble", "assign_partitions", "blackbox_radius", "ensemble_radius"]
