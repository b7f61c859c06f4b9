"""Builds what calls people: alarms, Prometheus rules, dashboards."""
