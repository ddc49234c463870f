"""The pages inside Airflow: the state, the loss and the risk of each release.

They read the catalogue only, never a data file. This module imports nothing, because
every process of Airflow loads the plugin, but only the API server shows the pages.
"""
