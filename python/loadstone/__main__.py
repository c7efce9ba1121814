"""`python -m loadstone`: the same as the `loadstone` command."""

from loadstone.cli.start import main

if __name__ == "__main__":
    raise SystemExit(main())
