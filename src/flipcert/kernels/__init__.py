"""How alike two inputs are.

A kernel is called as ``kernel(X, Z)``; ``kernel.diag(X)`` gives its values at equal inputs, and where its feature map
is finite, ``kernel.features(X)`` gives that map. Any callable ``k(X, Z)`` serves as a kernel too, a scikit-learn
kernel object among them.
"""

from flipcert.kernels.base import Kernel
from flipcert.kernels.conv_ntk import ConvNTK
from flipcert.kernels.linear import Linear
from flipcert.kernels.ntk import NTK
from flipcert.kernels.rbf import RBF
from flipcert.kernels.stored import StoredKernel
from flipcert.kernels.tangent import Tangent

# What kernels are called: in ``kernel=``, if they need no parameters, and in what is said of a model.
NAMED = {"ntk": NTK, "conv-ntk": ConvNTK, "linear": Linear, "rbf": RBF, "tangent": Tangent}

__all__ = ["NTK", "RBF", "ConvNTK", "Kernel", "Linear", "StoredKernel", "Tangent"]
