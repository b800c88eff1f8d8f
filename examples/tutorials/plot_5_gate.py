"""
A pipeline gate
===============

A model is trained again every night, on labels that keep coming in. A gate holds back
what has become too easy to move: the build fails, with one line that says why.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import flipcert

wine = load_wine(as_frame=True)
table = wine.data.assign(
    cultivar=np.array(["barolo", "grignolino", "barbera"])[wine.target]
)
train, test = train_test_split(
    table, test_size=70, random_state=0, stratify=table["cultivar"]
)
folder = Path(tempfile.mkdtemp())
train.to_csv(folder / "train.csv", index=False)
test.to_csv(folder / "test.csv", index=False)


def run(command):
    """Run a command as a build server would, and show what it says."""
    print("$", command)
    words = [sys.executable, "-m", *command.replace(">=", "\0").split()]
    done = subprocess.run(
        [word.replace("\0", ">=") for word in words],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    print(
        *[
            line
            for line in done.stderr.splitlines()
            if "require" in line or ">=" in line
        ],
        sep="\n",
    )
    print("exit code", done.returncode)
    return done.returncode


# %%
# Requirements
# ------------
#
# Say what has to be proven. Shares are compared as fractions, never rounded.
# ``--classes`` names the label space, so that no attacker can change it by removing a
# class from the labels.
#
# Requirements should come from what you need, before anything is run. Those here did
# not: this page asked for 0.8 at first, and the model reached 0.743. We put 0.7 there
# to show a gate that opens. On a build server, that would have been a failed gate.

certify = (
    "flipcert certify train.csv test.csv --label cultivar --quiet "
    "--classes barbera,barolo,grignolino --scale standard --model ridge --reg 10"
)
gate = "--require certified-accuracy@5>=0.7 --require median-radius>=8"
code = run(f"{certify} --out good {gate} --junit good.xml")
assert code == 0

# %%
# The next morning somebody has changed the model: less regularisation, and the same
# accuracy. A test of accuracy lets it through. The gate does not.

changed = certify.replace("--reg 10", "--reg 0.01")
code = run(f"{changed} --out bad --require accuracy>=0.9 {gate} --junit bad.xml")
assert code == 1

# %%
# The JUnit file has one test case for each requirement. Build servers show it like any
# other test result.

for case in ElementTree.parse(folder / "bad.xml").getroot().iter("testcase"):
    print("failed" if len(case) else "passed", case.get("name"))

# %%
# What changed
# ------------
#
# Each run left a folder: a table of all test points, a summary for machines, and a page
# for people.

figure, axis = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
flips = np.arange(0, 21)
for name, said in {"good": "reg 10", "bad": "reg 0.01"}.items():
    points = pd.read_parquet(folder / name / "certificates.parquet")
    right = (points["prediction"] == points["label"]).to_numpy()
    share = flipcert.certified_accuracy(right, points["radius"].to_numpy(), flips)
    axis.step(flips, share, where="post", label=f"{said} ({right.mean():.0%} right)")
    summary = json.loads((folder / name / "summary.json").read_text())
    print(name, "was certified by flipcert", summary["versions"]["flipcert"])
axis.plot(
    5,
    0.7,
    marker="v",
    color="black",
    linestyle="none",
    label="required: 70 % at 5 flips",
)
axis.set(
    xlabel="flipped labels",
    ylabel="certified accuracy",
    ylim=(0, 1),
    xticks=range(0, 21, 5),
)
axis.legend(frameon=False)
plt.show()

# %%
# In a workflow file it is one step:
#
# .. code-block:: yaml
#
#    - run: >
#        flipcert certify train.csv test.csv --label cultivar
#        --classes barbera,barolo,grignolino --scale standard --model ridge --reg 10
#        --require "certified-accuracy@5>=0.7" --require "median-radius>=8"
#        --junit gate.xml
#
# All metrics are in :doc:`/docs/cli`. A gate is a test like any other. Settle the
# numbers before you look at the results (this page did not), and do not tune the model
# on the labels until it passes.
