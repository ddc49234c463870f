"""What a class shows: how a quasi-identifier is coded, and the text that each class publishes.

Imports job and data. Knows neither files, Airflow nor Spark.
"""
