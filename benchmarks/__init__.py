"""How fast and how tight flipcert is, on this machine: ``python -m benchmarks --help``."""
