"""Running what is due: claim, call, record, in waves (CMP-401…405)."""
