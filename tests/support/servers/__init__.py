"""Real servers for the tests: each started on free loopback ports, in a folder of the tests."""
