"""The twin's own commands; they alone know the command line, whose engine and output they share."""
