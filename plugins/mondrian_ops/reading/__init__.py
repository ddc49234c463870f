"""How a release is worked with: its labels as numbers, bounds, sets, shares or drawn values.

Imports publish, stores, verify and below. Others import `read_release`, by `mondrian_ops` itself.
"""
