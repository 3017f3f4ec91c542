"""The rules of compensation as pure values: no framework, no clock, no I/O, no chance that is not passed in."""
