"""Samplers: each gives the order of the next pass, known ahead so that rows can be prefetched.

A sampler has ``p``, the probability that a batch contains each row (they sum to the batch size),
``batch_size``, and ``order(iterations, rng)``: positions of the rows of the next ``iterations``
batches, one batch after the other.
"""
