"""The writes: each one transaction with the state, the event and the decision in it."""
