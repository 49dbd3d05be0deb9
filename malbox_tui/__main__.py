"""`python -m malbox_tui`."""

import sys

from malbox_tui.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
