"""One module per algorithm that forms classes; another one would stand here.

``cut/cut_policy.py`` chooses between Mondrian and DI-Mondrian, which cut the rows of a fragment;
``cut/recoding_search.py`` between Samarati's search and two-phase TDS, which recode all rows alike.
"""
