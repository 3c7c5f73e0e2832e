"""Map over row blocks, reduce in a fixed order: serial, threads, Dask.

An executor maps a function of a block over jobs and knows no solver; a solver asks a
:class:`~adacoord.data.blocks.BlockMatrix` for products and knows no executor.
"""
