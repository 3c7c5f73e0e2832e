"""The problem: data, a loss and a penalty; its dual, and the certificate that binds them."""

from .problem import Problem as Problem
