"""
A support vector machine on text
================================

Change the import, get the same optimum, with a proof.

scikit-learn's ``LinearSVC`` stops by a rule that says little about how good the answer is; here
``tol`` is the relative duality gap, and the fit says what it reached.

    python examples/svm_on_text.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from adacoord import LinearSVC  # was: from sklearn.svm import LinearSVC


def make_texts(n=1500, seed=0):
    """Two authors who share most of a vocabulary, and each have some words they like."""
    rng = np.random.default_rng(seed)
    words = np.array(["".join(rng.choice(list("abcdefghijklmnop"), 5)) for _ in range(3000)])
    common = 1.0 / np.arange(1, 3001)
    taste = np.exp(0.6 * rng.standard_normal((2, 3000))) * common
    taste /= taste.sum(axis=1, keepdims=True)
    labels = rng.integers(0, 2, n)
    texts = [" ".join(rng.choice(words, 60, p=taste[k])) for k in labels]
    return texts, np.array(["anna", "bert"])[labels]


def draw(clf, file):
    """How the certified gap fell."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    history = clf.history_
    seen = history.relative_gap > 0.0
    ax.semilogy(history.passes[seen], history.relative_gap[seen], "o-")
    ax.axhline(clf.tol, color="0.6", linestyle=":", label=f"tol = {clf.tol:g}")
    ax.set(xlabel="passes over the texts", ylabel="certified relative gap")
    ax.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(file=None):
    texts, authors = make_texts()
    X = TfidfVectorizer().fit_transform(texts)
    train, test, y_train, y_test = train_test_split(X, authors, random_state=0)
    clf = LinearSVC(loss="hinge", C=10.0, tol=1e-6).fit(train, y_train)
    print(f"{train.shape[0]} texts, {train.shape[1]} words; accuracy {clf.score(test, y_test):.3f}")
    print(f"{clf.solver_}: {clf.n_iter_} passes, relative gap {clf.relative_gap_:.1e}")
    if file:
        draw(clf, file)
    return clf


if __name__ == "__main__":
    main(*sys.argv[1:])
