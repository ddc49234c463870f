#!/usr/bin/env python3
"""Exit status 0 if the Spark Connect server on this machine says which Spark it is.

The session is always the same one: it does not pile up sessions on the server.
"""

import sys

import grpc
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

SESSION = "00000000-0000-4000-8000-000000000000"
TIMEOUT_S = 10

request = base_pb2.AnalyzePlanRequest(
    session_id=SESSION,
    user_context=base_pb2.UserContext(user_id="healthcheck"),
    spark_version=base_pb2.AnalyzePlanRequest.SparkVersion(),
)
try:
    with grpc.insecure_channel("localhost:15002") as channel:
        service = base_pb2_grpc.SparkConnectServiceStub(channel)
        service.AnalyzePlan(request, timeout=TIMEOUT_S)
except grpc.RpcError as error:
    sys.exit(f"no answer: {error.code()}")
