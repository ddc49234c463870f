"""`make ui`: Airflow with everything loaded, until Ctrl-C."""

from __future__ import annotations

import sys
import time

from airflow_api import AirflowError
from demo import HOME
from local_airflow import LocalAirflow, free_port, termination_as_exit

DAG_IDS = ("mondrian_anonymize", "mondrian_etl_example")


def main() -> int:
    """Start Airflow, print its address, and keep it until Ctrl-C or SIGTERM."""
    try:
        with termination_as_exit(), LocalAirflow(HOME, port=free_port(8080)) as airflow:
            for dag_id in DAG_IDS:
                airflow.unpause(dag_id)
            print(f"Airflow is at {airflow.url} (this machine only, no login). Ctrl-C stops it.")
            print(f"The trigger form: {airflow.url}/dags/{DAG_IDS[0]}", flush=True)
            while True:
                airflow.check_alive()
                time.sleep(1)
    except AirflowError as error:
        print(f"ui: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
