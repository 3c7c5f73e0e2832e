"""Data sets by name: ``A, b = adacoord.datasets.load("a9a")``.

A name is looked for in the folder that the environment variable ``ADACOORD_DATA`` names, where any
svmlight file is found by its name (``rcv1.subset.binary`` is ``rcv1.subset.binary.svm.xz`` there),
then in the cache, and then downloaded from the LIBSVM collection
(https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/), whose names these are.

The cache is ``ADACOORD_CACHE``, or the user's cache folder.  The collection publishes no digests:
a file is checked by its length, by the checksums inside its compression, and by the rows and
columns its page states; its own SHA-256 is kept beside it from then on, so that a file that is
damaged later is noticed.
"""

from __future__ import annotations

import difflib
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .cache import cache_folder as base_folder

if TYPE_CHECKING:
    import numpy as np
    from scipy import sparse

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_COMPRESSED = ("", ".xz", ".bz2", ".gz")


@dataclass(frozen=True)
class Source:
    """A file of the collection: where it is, its rows and columns, and its digest if known."""

    file: str
    n: int
    d: int
    sha256: str | None = None

    @property
    def url(self) -> str:
        return f"{SITE}/{self.file}"


#: The collection's names.  d may exceed the largest index in the file.
SOURCES: dict[str, Source] = {
    "a1a": Source("binary/a1a", 1605, 123),
    "a2a": Source("binary/a2a", 2265, 123),
    "a9a": Source("binary/a9a", 32561, 123),
    "a9a.t": Source("binary/a9a.t", 16281, 123),
    "w8a": Source("binary/w8a", 49749, 300),
    "w8a.t": Source("binary/w8a.t", 14951, 300),
    "colon-cancer": Source("binary/colon-cancer.bz2", 62, 2000),
    "covtype.libsvm.binary": Source("binary/covtype.libsvm.binary.bz2", 581012, 54),
    "covtype.libsvm.binary.scale": Source("binary/covtype.libsvm.binary.scale.bz2", 581012, 54),
    "epsilon_normalized": Source("binary/epsilon_normalized.bz2", 400000, 2000),
    "german.numer": Source("binary/german.numer", 1000, 24),
    "gisette_scale": Source("binary/gisette_scale.bz2", 6000, 5000),
    "gisette_scale.t": Source("binary/gisette_scale.t.bz2", 1000, 5000),
    "heart_scale": Source("binary/heart_scale", 270, 13),
    "ijcnn1.tr": Source("binary/ijcnn1.tr.bz2", 35000, 22),
    "ijcnn1.t": Source("binary/ijcnn1.t.bz2", 91701, 22),
    "ionosphere_scale": Source("binary/ionosphere_scale", 351, 34),
    "kdda": Source("binary/kdda.bz2", 8407752, 20216830),
    "kddb": Source("binary/kddb.bz2", 19264097, 29890095),
    "leu": Source("binary/leu.bz2", 38, 7129),
    "leu.t": Source("binary/leu.t.bz2", 34, 7129),
    "mushrooms": Source("binary/mushrooms", 8124, 112),
    "news20.binary": Source("binary/news20.binary.bz2", 19996, 1355191),
    "phishing": Source("binary/phishing", 11055, 68),
    "rcv1_train.binary": Source("binary/rcv1_train.binary.bz2", 20242, 47236),
    "rcv1_test.binary": Source("binary/rcv1_test.binary.bz2", 677399, 47236),
    "real-sim": Source("binary/real-sim.bz2", 72309, 20958),
    "url_combined": Source("binary/url_combined.bz2", 2396130, 3231961),
    "mnist": Source("multiclass/mnist.bz2", 60000, 780),
    "mnist.scale": Source("multiclass/mnist.scale.bz2", 60000, 780),
    "news20": Source("multiclass/news20.bz2", 15935, 62061),
    "protein": Source("multiclass/protein.bz2", 17766, 357),
    "abalone": Source("regression/abalone", 4177, 8),
    "abalone_scale": Source("regression/abalone_scale", 4177, 8),
    "housing": Source("regression/housing", 506, 13),
    "housing_scale": Source("regression/housing_scale", 506, 13),
    "E2006.train": Source("regression/E2006.train.bz2", 16087, 150360),
    "YearPredictionMSD": Source("regression/YearPredictionMSD.bz2", 463715, 90),
}


def load(
    name: str, *, n_features: int | None = None, download: bool = True, verbose: bool = False
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """A data set as :func:`adacoord.io.load_svmlight` reads it; labels are those of the file.

    Parameters
    ----------
    name : str
        A name of :func:`names`, or of an svmlight file in the folder ``ADACOORD_DATA``.
    n_features : int, optional
        Number of columns; by default the collection's, or the largest index in the file.
    download : bool, default True
        Whether a file that is neither there nor in the cache may be downloaded.
    verbose : bool, default False
        Show a line of progress while it is.

    Returns
    -------
    A, b : scipy.sparse.csr_matrix of float64, ndarray of float64
    """
    from .io import load_svmlight

    local = _in_folder(name)
    if local is not None:
        return load_svmlight(local, n_features)
    file = path(name, download=download, verbose=verbose)
    source = SOURCES[name]
    try:
        A, b = load_svmlight(file, n_features)
    except ValueError as error:
        raise ValueError(f"{error}; remove {file} to have it downloaded again") from None
    if A.shape[0] != source.n or (n_features is None and A.shape[1] > source.d):
        raise ValueError(
            f"{file}: {A.shape[0]} rows and {A.shape[1]} columns, but {name} has {source.n} and "
            f"{source.d}; remove the file to have it downloaded again"
        )
    if n_features is None and A.shape[1] < source.d:
        A.resize((source.n, source.d))  # the last columns are empty in this file
    return A, b


def path(name: str, *, download: bool = True, verbose: bool = False) -> Path:
    """The file of a data set, downloaded if need be."""
    local = _in_folder(name)
    if local is not None:
        return local
    if name not in SOURCES:
        raise ValueError(f"{name!r}: there is no data set of this name{_near(name)}")
    source = SOURCES[name]
    target = cache_folder() / Path(source.file).name
    if target.exists():
        _check_digest(target)
    elif download:
        target.parent.mkdir(parents=True, exist_ok=True)
        _download(name, source, target, verbose)
    else:
        raise FileNotFoundError(
            f"{name}: neither in ADACOORD_DATA nor in the cache {cache_folder()}; allow "
            f"download=True, or put {source.url} there"
        )
    return target


def names() -> list[str]:
    """What :func:`load` takes: the files of ``ADACOORD_DATA``, then the collection's names."""
    folder = _folder()
    found = sorted({_stem(f.name) for f in folder.iterdir() if _is_data(f)}) if folder else []
    return found + [name for name in SOURCES if name not in found]


def cache_folder() -> Path:
    """Where downloads are kept."""
    return base_folder() / "datasets"


def _folder() -> Path | None:
    chosen = os.environ.get("ADACOORD_DATA")
    if not chosen:
        return None
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise ValueError(f"ADACOORD_DATA={chosen}: there is no such folder; correct or unset it")
    return folder


def _in_folder(name: str) -> Path | None:
    if not isinstance(name, str) or not name or name != os.path.basename(name):
        raise ValueError(f"name={name!r}: the name of a data set, such as 'a9a', is needed")
    folder = _folder()
    if folder is None:
        return None
    candidates = (folder / f"{name}{kind}{c}" for kind in (".svm", "") for c in _COMPRESSED)
    return next((file for file in candidates if file.is_file()), None)


def _is_data(file: Path) -> bool:
    return file.is_file() and any(file.name.endswith(f".svm{c}") for c in _COMPRESSED)


def _stem(name: str) -> str:
    return name[: name.rindex(".svm")]


def _near(name: str) -> str:
    close = difflib.get_close_matches(name, names(), n=4, cutoff=0.5)
    if not close:
        return "; adacoord.datasets.names() has them"
    return f"; did you mean {', '.join(close)}?"


def _download(name: str, source: Source, target: Path, verbose: bool) -> None:
    from .io.download import digest, download
    from .io.writing import replacing

    with ExitStack() as stack:
        report = stack.enter_context(_Bar(name)) if verbose else None
        download(source.url, target, sha256=source.sha256, report=report)
    with replacing(_digest_file(target)) as file:
        file.write(digest(target).encode())


def _digest_file(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _check_digest(target: Path) -> None:
    """Against the digest kept since the download; a file put there by hand has none."""
    from .io.download import digest

    kept = _digest_file(target)
    if kept.exists() and kept.read_text().strip() != digest(target):
        raise ValueError(
            f"{target}: the file has changed since it was downloaded (its SHA-256 is another); "
            "remove it to have it downloaded again"
        )


class _Bar:
    """A line of progress on stderr; nothing where that is not a terminal."""

    def __init__(self, name: str):
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

        self._progress = Progress(
            "{task.description}",
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(f"downloading {name}", total=None)

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()

    def __call__(self, done: int, total: int | None) -> None:
        self._progress.update(self._task, completed=done, total=total)
