"""Ending with a message, and writing files."""
import sys


def fail(message, code=1):
    """Ends the program as the heddle command does."""
    print(f"heddle: {message}", file=sys.stderr)
    sys.exit(code)


def write(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")
