"""Where the work runs."""
