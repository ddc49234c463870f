"""The kernels: the few loops that run over every row, in C, and the Python that calls them.

`build` compiles the C files, `library` loads what they became, and `arrays` checks what they are
handed; the other modules are the kernels as Python sees them, each by the name of its C file.
"""
