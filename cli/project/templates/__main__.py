"""Runs the layers of the installed Stillwater under Pulumi. Your cluster is in clusters/."""

from stillwater import program

program.main()
