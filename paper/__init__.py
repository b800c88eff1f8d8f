"""The evaluation of the EnsembleCert paper, made again as a user of flipcert would write it.

It imports public names of flipcert only, and is not part of the installed package: ``python -m paper --help``.
"""
