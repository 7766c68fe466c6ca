"""`python -m toolwright`."""

from toolwright.cli import main

main()
