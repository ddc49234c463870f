"""The process that Spark forks its Python workers from (``spark.python.daemon.module``)."""

from pyspark.daemon import manager

from faults.agent import watch

if __name__ == "__main__":
    watch()
    manager()
