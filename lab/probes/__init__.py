"""Probes tried on storage whose truth is known, drawn from seeds."""

import os

for _threads in ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS"):
    # Tables here are small: several threads for one of them cost more than they save.
    os.environ.setdefault(_threads, "1")
