"""Which rows form a class: the plan of the fragments, the criteria, and the algorithms.

Imports job, data and generalize. Knows neither files, Airflow nor Spark. A package adds a criterion
by `job.criterion`; `criteria` has those that the kernels know.
"""
