"""How the tasks reach what lies outside Airflow, as its connections describe it."""
