"""`python -m hopsim`, and the `hopsim` script: the command, and what may end it before it begins."""

from __future__ import annotations

import errno
import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is imported, and help that a full disk does not take, are no tracebacks.

    Raises: SystemExit: always, with the exit code.
    """
    try:
        from hopsim.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        from hopsim.cli.output import drop_stdout

        drop_stdout()
        sys.stderr.write(f"standard output: cannot write: {error.strerror}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
