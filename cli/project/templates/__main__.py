"""What Pulumi runs: the layers of the installed Stillwater. Your cluster is in clusters/."""

from stillwater import program

program.main()
