"""The nightly DAG: what its landing folder holds, and which drops each run takes."""
