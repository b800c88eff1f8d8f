"""What certificates add up to: metrics, plots and a report."""
