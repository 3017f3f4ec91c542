"""The whole product on one machine with example tenants, people, workflows and a stream of runs."""
