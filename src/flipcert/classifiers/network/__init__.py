"""Networks trained by gradient descent, and what flipped labels can do to them."""
