"""The command line of tooltrail. Data goes to stdout, messages go to stderr."""
