"""The solvers: one file a method, each a stepper; :mod:`.registry` says what each can solve."""
