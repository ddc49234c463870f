"""Airflow's connections and settings, as the tasks use them."""
