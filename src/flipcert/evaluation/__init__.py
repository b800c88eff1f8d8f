"""What certificates add up to: metrics and plots."""
