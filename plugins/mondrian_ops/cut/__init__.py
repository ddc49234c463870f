"""Which rows form a class: the plan of the fragments, the criteria, and the algorithms.

Imports job, data and generalize. Knows neither files, Airflow nor Spark. Public for others:
`criteria`, with which a privacy criterion is added.
"""
