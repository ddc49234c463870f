"""The kernels: the few loops that run over every row, in C, and the Python that calls them.

`build` compiles the C files, `library` loads the result, and `arrays` checks arguments. Each of the
other modules wraps the C file of its name.
"""
