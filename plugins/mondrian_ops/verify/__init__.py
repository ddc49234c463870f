"""What was written: its classes, their values, its loss, and whether each label is true.

Imports job and data; nothing of cut, generalize or their kernels, so that an error of theirs is
noticed here. Knows neither files, Airflow nor Spark.
"""
