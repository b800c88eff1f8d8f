"""A table with text and gaps: what --encode, --impute and --scale do, as a pipeline of scikit-learn."""

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import flipcert

rng = np.random.default_rng(0)
X, y = load_wine(return_X_y=True, as_frame=True)
X["region"] = rng.choice(["north", "south", "east"], len(X))
X.loc[rng.choice(len(X), 9, replace=False), "ash"] = np.nan
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

numbers = X.columns.drop("region")
columns = make_column_transformer(
    (SimpleImputer(strategy="median"), numbers),
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["region"]),
)
model = make_pipeline(columns, StandardScaler(), flipcert.KernelSVM()).fit(X_train, y_train)
certificates = flipcert.certify(model, X_test)
print(f"accuracy: {model.score(X_test, y_test):.3f}")
print("half of the correct ones withstand:", certificates.median_certified_robustness(y_test))
