"""What users call, and the judge: solve, path, certify; run, the monitor, the progress line."""
