"""The kernels: the few loops that run over every row, in C, and the Python that calls them.

`build` compiles the C files, `library` loads what they became; the other modules are the kernels as
Python sees them, one for each C file of their name.
"""
