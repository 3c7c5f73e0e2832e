"""SPDC, AdaSPDC and APDC: primal-dual coordinate methods."""
