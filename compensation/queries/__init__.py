"""What a principal may see. Nothing here writes."""
