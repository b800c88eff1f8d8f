"""Commands of the paper, as tests give them."""

from __future__ import annotations

import pytest

from paper.command import main


@pytest.fixture
def paper(capsys):
    """Give a command; what it wrote to standard output and error."""

    def run(*arguments, code=0):
        capsys.readouterr()
        ended = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert ended == code, said
        return said

    return run


@pytest.fixture
def refused(paper):
    """Give a command that cannot be carried out; the one sentence that is said to it."""

    def run(*arguments):
        said = " ".join(paper(*arguments, code=2).err.split())
        assert said.count("Error: ") == 1
        assert said.endswith(".")
        return said[said.index("Error: ") + 7 :]

    return run
