"""How an inverse action reaches another system: plain async Python, no Django, no database."""
