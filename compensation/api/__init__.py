"""The HTTP API (wire.md): parse, one operation or query, answer."""
