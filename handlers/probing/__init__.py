"""The probe's parts: attempts (counted), topic (led by every broker), clients, page (metrics)."""
