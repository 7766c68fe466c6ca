"""`python -m toolwright`."""

from toolwright.cli import main

if __name__ == "__main__":
    main()
