"""How many training labels would an attacker have to flip to change this prediction? With a proof."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flipcert import kernels, plots
    from flipcert.audit import measure_audit, plan_audit, suspicious_labels, wrong_labels_at_most
    from flipcert.classifiers import (
        BoundedNetwork,
        FixedBudget,
        KernelRidge,
        KernelSVM,
        LabelLinearClassifier,
        LabelSpreading,
        LogisticRegression,
        MilpSVM,
        SmoothedLinear,
        WeightedNeighbors,
    )
    from flipcert.classifiers.pipelines import certify, certify_collectively, worst_flips
    from flipcert.ensemble import PartitionEnsemble, assign_partitions, blackbox_radius, ensemble_radius
    from flipcert.exceptions import CertificateError, UnsolvedError
    from flipcert.flips import Witness, cheapest_flips, flip_costs
    from flipcert.labels.annotations import Annotations
    from flipcert.labels.label_free import LabelFree
    from flipcert.results.audit_plan import AuditPlan
    from flipcert.results.certificates import Certificates
    from flipcert.results.collective_certificate import CollectiveCertificate
    from flipcert.results.metrics import certified_accuracy, median_certified_robustness

__version__ = "0.2.0.dev0"

__all__ = [
    "Annotations",
    "AuditPlan",
    "BoundedNetwork",
    "CertificateError",
    "Certificates",
    "CollectiveCertificate",
    "FixedBudget",
    "KernelRidge",
    "KernelSVM",
    "LabelFree",
    "LabelLinearClassifier",
    "LabelSpreading",
    "LogisticRegression",
    "MilpSVM",
    "PartitionEnsemble",
    "SmoothedLinear",
    "UnsolvedError",
    "WeightedNeighbors",
    "Witness",
    "assign_partitions",
    "blackbox_radius",
    "certified_accuracy",
    "certify",
    "certify_collectively",
    "cheapest_flips",
    "ensemble_radius",
    "flip_costs",
    "kernels",
    "measure_audit",
    "median_certified_robustness",
    "plan_audit",
    "plots",
    "suspicious_labels",
    "worst_flips",
    "wrong_labels_at_most",
]

# Where each public name lives. It is imported when first used: the help of the command line should not wait for
# compilers and linear algebra.
_HOMES = {
    "flipcert.results.audit_plan": ("AuditPlan",),
    "flipcert.results.certificates": ("Certificates",),
    "flipcert.results.collective_certificate": ("CollectiveCertificate",),
    "flipcert.classifiers": (
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
    ),
    "flipcert.audit": ("measure_audit", "plan_audit", "suspicious_labels", "wrong_labels_at_most"),
    "flipcert.ensemble": ("PartitionEnsemble", "assign_partitions", "blackbox_radius", "ensemble_radius"),
    "flipcert.results.metrics": ("certified_accuracy", "median_certified_robustness"),
    "flipcert.exceptions": ("CertificateError", "UnsolvedError"),
    "flipcert.flips": ("Witness", "cheapest_flips", "flip_costs"),
    "flipcert.labels.annotations": ("Annotations",),
    "flipcert.labels.label_free": ("LabelFree",),
    "flipcert.classifiers.pipelines": ("certify", "certify_collectively", "worst_flips"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in __all__:
        value = import_module(f"flipcert.{name}")
    else:
        raise AttributeError(f"module 'flipcert' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
