"""A network of one's own, learned without labels: how many flipped labels fine-tuning it withstands."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flipcert

X, y = load_digits(return_X_y=True)
X_rest, X_test, y_rest, y_test = train_test_split(X / 16 - 0.5, y, test_size=200, random_state=0)

# An autoencoder on all images; no label is looked at. Any network that never saw labels under
# attack will do.
torch.manual_seed(0)
encoder = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.Tanh())
decoder = torch.nn.Linear(48, 64)
optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
images = torch.as_tensor(X_rest, dtype=torch.float32)
for _ in range(200):
    loss = ((decoder(encoder(images)) - images) ** 2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

# One output to fine-tune: a fresh read-out of what was learned. Its labels come from people, and
# may be wrong.
network = torch.nn.Sequential(encoder, torch.nn.Linear(48, 1))
X_train, y_train = X_rest[:500], y_rest[:500]
for name, kernel in {
    "all of it": flipcert.kernels.Tangent(network),
    "in 500 random directions": flipcert.kernels.Tangent(network, projection=500),
}.items():
    model = flipcert.KernelRidge(kernel, reg=1.0, classes=range(10)).fit(X_train, y_train)
    certificates = model.certify(X_test)
    accuracy = np.mean(certificates.prediction == y_test)
    median = certificates.median_certified_robustness(y_test)
    print(f"fine-tuned {name}: {accuracy:.3f} correct, half of these withstand {median} flips")
