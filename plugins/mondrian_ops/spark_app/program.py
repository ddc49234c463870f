"""The program that spark-submit runs, or Python when it runs the package as a zip."""

from mondrian_ops.engines import shipping

shipping.bootstrap()

from mondrian_ops import spark_app  # noqa: E402 - from the unpacked package

if __name__ == "__main__":
    spark_app.main()
