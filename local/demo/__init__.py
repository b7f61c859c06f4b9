"""The demo: a broker's node dies under a live producer; what happened is judged and drawn."""
