"""What is there: values and their codes, hierarchies, persons, the profile of a dataset.

Imports job. Knows neither files, Airflow nor Spark: it works on Arrow arrays handed to it.
"""
