"""Answers of every estimator on small fixed data, stored, so that a change of the code cannot change them unnoticed.

Run: ``python -m pytest tests/goldens`` (part of ``make test``). Whole numbers and labels are compared exactly; floating
point numbers exactly where the data make them exact on every machine (whole numbers, and fractions by powers of two),
elsewhere to nine digits, or as many as there are in single precision. Points that are flagged ``rounding_sensitive``
are left out. Of attacks that a solver found, of which there may be others as small, the number of flips is compared.

Store anew, after a change that is meant: ``python -m tests.goldens.make``, from the root of the repository. Numbers are
written with all their digits, so that on one machine ``git diff tests/goldens`` afterwards shows every bit that moved.

The cases use public names of ``flipcert`` only. Those of one question share a file here and in ``stored/``; ``data.py``
makes their data, ``record.py`` says what is noted of a model and what counts as a difference.
"""
