"""What kernel classifiers share: a kernel, given, by name or precomputed, and training inputs."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.utils import Tags

from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.kernels.base import Kernel
from flipcert.kernels.sparse import takes_sparse_inputs
from flipcert.linear.kernel_rows import is_precomputed, ready_kernel


class KernelClassifier(CertifiedByWeights):
    """A label-linear classifier whose weights come from a kernel."""

    kernel: Any

    def __sklearn_tags__(self) -> Tags:
        """Tell cross-validation to slice both axes of a precomputed kernel, and who asks whether X may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse_inputs(self.kernel)
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags

    def _fit_kernel(self, X: NDArray[Any]) -> None:
        """Keep the training inputs and make the kernel ready."""
        self._kernel: Kernel | None = ready_kernel(self.kernel, X)
        self.X_fit_ = X
