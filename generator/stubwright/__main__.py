"""`python -m stubwright`."""

from stubwright.cli import main

if __name__ == "__main__":
    main()
