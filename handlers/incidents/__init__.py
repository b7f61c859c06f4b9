"""One turn of an incident: received, observed, acted on."""
