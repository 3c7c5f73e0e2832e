"""Compiled kernels on disk: one file for each kernel and signature, named by what it depends on.

The folder is ``kernels/<stamp>`` in :func:`adacoord.cache.cache_folder`, or in ``NUMBA_CACHE_DIR``
where that is set.  The stamp is a digest of the *content* of every file that holds shared scalar
kernels, and of the versions of Numba and Python: a copy of the package, wherever it is and whatever
its times say, finds the kernels of its twin; an edited one finds none.  (Numba's own cache looks at
the file of the outermost function only, so that an edited loss would be ignored by
the solvers that inline it, and keeps it beside the source, which may be read-only.)

The name of a file is a digest of the kernel, its source and its signature.  So two processes that
compile at once write the same files, each in one step, and neither can take the other's: there is
no index to fight for.  A file ends with a digest of its content: what is damaged, or cannot be
read, is compiled anew.  A folder that cannot be written costs the compilation in every process,
never a fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import secrets
import shutil
import sys
import time
from functools import cache
from pathlib import Path

import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.runtime import rtsys

from ..cache import cache_folder

#: Where kernels live that others inline.
_SHARED = ("kernels/*.py", "sampling/*.py", "solvers/*/*kernels.py")
_PACKAGE = Path(__file__).parent.parent
#: Folders of other stamps that nobody has written to for so long are removed: some 40 MB each.
FORGET = 30 * 86400.0


@cache
def _content(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


@cache
def kernel_folder() -> str | None:
    """Where the kernels of this package are kept; None where there is no home for it."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for file in sorted(file for pattern in _SHARED for file in _PACKAGE.glob(pattern)):
        digest.update(file.relative_to(_PACKAGE).as_posix().encode() + _content(str(file)))
    chosen = getattr(config, "CACHE_DIR", "")
    try:
        base = Path(chosen) / "adacoord" if chosen else cache_folder()
    except RuntimeError:  # no home
        return None
    return str(base / "kernels" / digest.hexdigest()[:16])


def can_write(folder: str) -> bool:
    """Whether files can be made there; makes the folder."""
    try:
        os.makedirs(folder, exist_ok=True)
        name = os.path.join(folder, f"{secrets.token_hex(8)}.tmp")
        with open(name, "wb"):
            pass
        os.remove(name)
    except OSError:
        return False
    return True


class _Locator(_CacheLocator):
    """Tells Numba where and under which names; never touches the disk (50 us a kernel)."""

    def __init__(self, py_func, py_file):
        self._py_file, self._lineno = py_file, py_func.__code__.co_firstlineno

    def get_cache_path(self):
        return kernel_folder()

    def get_source_stamp(self):
        return _content(self._py_file)

    def get_disambiguator(self):
        return str(self._lineno)

    @classmethod
    def from_function(cls, py_func, py_file):
        return cls(py_func, py_file)


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class KernelCache(FunctionCache):
    """What Numba's dispatcher asks for compiled signatures, and gives new ones to."""

    _impl_class = _Implementation

    def __init__(self, py_func):
        super().__init__(py_func)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig, target_context):
        try:
            # Numba's own would fill the context with all that it knows of Python and NumPy, which
            # takes as long as its import; what is compiled already asks for the runtime alone, and
            # the compiler fills the context by itself
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # of another Numba, say, that can unpickle but not rebuild it
            return None

    def save_overload(self, sig, data):
        with contextlib.suppress(Exception):  # the disk is full, or may not be written to
            super().save_overload(sig, data)


class _Files:
    """The files of one kernel, in the place of Numba's index and data files."""

    def __init__(self, folder: str | None, name: str, stamp: bytes):
        self._folder, self._name, self._stamp = folder, name, stamp

    def flush(self):
        pass  # nothing is held back

    def _path(self, key) -> str:
        assert self._folder is not None
        digest = hashlib.sha256(repr((self._stamp, key)).encode()).hexdigest()
        return os.path.join(self._folder, f"{self._name}.{digest[:20]}.nbc")

    def load(self, key):
        if self._folder is None:
            return None
        try:
            content = Path(self._path(key)).read_bytes()
        except OSError:
            return None
        data, digest = content[:-32], content[-32:]
        if hashlib.sha256(data).digest() != digest:
            return None
        stamp, its_key, found = pickle.loads(data)
        return found if (stamp, its_key) == (self._stamp, key) else None

    def save(self, key, data):
        if self._folder is None:
            return
        if not os.path.isdir(self._folder):
            _forget(Path(self._folder).parent)
            os.makedirs(self._folder, exist_ok=True)
        content = numba.core.serialize.dumps((self._stamp, key, data))
        path = self._path(key)
        temporary = f"{path}.{secrets.token_hex(8)}.tmp"
        try:
            with open(temporary, "wb") as file:
                file.write(content + hashlib.sha256(content).digest())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise


def _forget(folder: Path) -> None:
    """Remove the kernels of sources and Numbas that were last compiled long ago."""
    with contextlib.suppress(OSError):
        for other in folder.iterdir():
            if len(other.name) == 16 and time.time() - other.stat().st_mtime > FORGET:
                shutil.rmtree(other, ignore_errors=True)
