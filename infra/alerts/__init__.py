"""Who is called for what: alarms, Prometheus rules, dashboards."""
