"""Tags of short sounds."""
