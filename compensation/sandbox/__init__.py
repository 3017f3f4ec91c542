"""The sandbox downstream: a small real HTTP server whose effects, faults and ledger can be looked at.

It imports no Django, so that `python -m compensation.sandbox` is up in well under a second.
"""
