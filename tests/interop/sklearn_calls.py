"""Estimators and metrics of scikit-learn; ``put`` makes a device's array."""

from functools import partial

import numpy as np
from sklearn import base, decomposition, metrics, model_selection, preprocessing
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5)) @ RNG.standard_normal((5, 5))
Y = X @ RNG.standard_normal(5) + 0.1 * RNG.standard_normal(60)
TWO, THREE = (Y > 0).astype(np.int64), np.digitize(Y, [-1, 1]).astype(np.int64)
P = 1 / (1 + np.exp(-Y))

RIDGE = Ridge(solver="svd")


def fitted(estimator, names, y, put):
    """Return attributes of an estimator that was fitted, and what its methods give."""
    x = put(X)
    model = base.clone(estimator).fit(x, None if y is None else put(y))
    values = [getattr(model, name) for name in names.split()]
    return [value(x) if callable(value) else value for value in values]


def scored(metric, truth, guess, put):
    return getattr(metrics, metric)(put(truth), put(guess))


def compared(kernel, put):
    return getattr(metrics.pairwise, kernel)(put(X))


def tried(search, put):
    found = search.fit(put(X), put(Y))
    return found.best_score_, found.predict(put(X))


ESTIMATORS = {
    "PCA": (
        decomposition.PCA(3, svd_solver="full"),
        "transform explained_variance_ components_ mean_",
        None,
    ),
    "Ridge": (RIDGE, "predict coef_ intercept_", Y),
    "GaussianNB": (GaussianNB(), "predict predict_proba", THREE),
    "StandardScaler": (preprocessing.StandardScaler(), "transform mean_ scale_", None),
    "make_pipeline": (
        make_pipeline(preprocessing.StandardScaler(), RIDGE),
        "predict",
        Y,
    ),
}
REGRESSION = "r2_score max_error mean_pinball_loss median_absolute_error"
CLASSES = "accuracy_score cohen_kappa_score confusion_matrix"
CURVES = "log_loss det_curve precision_recall_curve"
PAIRWISE = "euclidean_distances cosine_similarity rbf_kernel laplacian_kernel"

CALLS = {
    **{name: partial(fitted, *case) for name, case in ESTIMATORS.items()},
    **{name: partial(scored, name, Y, 1.1 * Y + 1) for name in REGRESSION.split()},
    **{name: partial(scored, name, THREE, TWO) for name in CLASSES.split()},
    **{name: partial(scored, name, TWO, P) for name in CURVES.split()},
    **{name: partial(compared, name) for name in PAIRWISE.split()},
    "cross_val_predict": lambda put: model_selection.cross_val_predict(
        RIDGE, put(X), put(Y)
    ),
    "train_test_split": lambda put: model_selection.train_test_split(
        put(X), put(Y), random_state=0
    ),
    "GridSearchCV": partial(
        tried, model_selection.GridSearchCV(RIDGE, {"alpha": [0.1, 1.0]})
    ),
}
#: What asks for more than the standard: an argument by place.
BY_LIBRARY = {"roc_curve": partial(scored, "roc_curve", TWO, P)}

#: What scikit-learn gives to NumPy's functions.
ON_CPU = {
    "matthews_corrcoef": partial(scored, "matthews_corrcoef", THREE, TWO),
    "roc_auc_score": partial(scored, "roc_auc_score", TWO, P),
}
