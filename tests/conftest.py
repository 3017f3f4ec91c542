"""Fixtures for every kind of test. Each pytest-xdist process gets a database of its own (test_postgres_gw0, …)."""
