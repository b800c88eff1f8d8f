"""A kernel from neural-tangents, as it is: any callable ``k(X, Z)`` serves as a kernel.

neural-tangents is not a dependency of flipcert. Its last release works with these versions:
``pip install neural-tangents==0.6.5 jax==0.5.3 jaxlib==0.5.3 tf2jax==0.3.7``.
"""

import jax
import numpy as np
from neural_tangents import stax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flipcert

# Half of the digits are lost in float32, more where inputs are nearly equal.
jax.config.update("jax_enable_x64", True)

_, _, kernel_fn = stax.serial(
    stax.Dense(512, W_std=1.4, b_std=0.1), stax.Relu(), stax.Dense(1, W_std=1.4, b_std=0.1)
)  # fmt: skip


def kernel(X, Z):
    """Neural tangent kernel of the network above, as NumPy knows it."""
    return np.asarray(kernel_fn(X, Z, "ntk"))


X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16 - 0.5, y, train_size=500, test_size=100, random_state=0)

certificates = flipcert.KernelRidge(kernel, reg=1.0).fit(X_train, y_train).certify(X_test)
print("half of the correct ones withstand:", certificates.median_certified_robustness(y_test))

# The same network is built in, exact to the last digits, and streamed.
own = flipcert.KernelRidge(flipcert.kernels.NTK(activation="relu", weight_std=1.4, bias_std=0.1), reg=1.0)
print("the same radii:", np.array_equal(own.fit(X_train, y_train).certify(X_test).radius, certificates.radius))
