"""The pages inside Airflow: what became of each release, its loss and its risk.

They read the archive of reports and nothing else: no data file, no row. Nothing is imported here,
because Airflow loads the plugin in every process and the pages are shown by one.
"""
