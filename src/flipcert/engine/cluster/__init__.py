"""The seam to clusters: how tasks and what they refer to reach other processes."""
