"""The request of the heddle command, ending with a message, and writing files."""
import json
import os
import sys


def fail(message, code=1):
    """Ends the program as the heddle command does."""
    print(f"heddle: {message}", file=sys.stderr)
    sys.exit(code)


def read_request():
    """What the heddle command asks for: JSON in the file that is the program's argument."""
    with open(sys.argv[1]) as file:
        return json.load(file)


def make_folder(path):
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        fail(f"{path} cannot be made: {error.strerror}")


def write(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")
