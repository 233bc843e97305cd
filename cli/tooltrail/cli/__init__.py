"""The command line: parse, one library call, print. Data on stdout, messages on stderr."""
