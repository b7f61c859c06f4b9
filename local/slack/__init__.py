"""Slack in the twin: the Web API methods the toolkit calls, and a page that shows the threads."""
