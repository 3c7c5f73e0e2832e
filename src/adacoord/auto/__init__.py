"""What ``auto`` does: the rule, and the fallback where it was wrong."""
