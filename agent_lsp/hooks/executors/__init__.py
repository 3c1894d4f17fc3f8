"""The three ways to run a configured hook; which one is chosen by its ``type`` alone (B15)."""
