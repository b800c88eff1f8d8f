"""A second opinion on a run, by other means than those it was made with: slow, plain, and exact."""
