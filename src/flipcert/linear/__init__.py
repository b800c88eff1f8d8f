"""How inputs become weights, and what weights tell about flips."""
