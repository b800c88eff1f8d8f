"""A report for people: one HTML page that needs nothing but itself."""

from flipcert.report.page import report_page, write_report
from flipcert.report.points import notable_points

__all__ = ["notable_points", "report_page", "write_report"]
