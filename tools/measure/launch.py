"""What `heddle profile` starts under the profiler: one call of an operation on random inputs.

    python3 launch.py LIBRARY DEVICE CASE        CASE as bench.py has it, in JSON"""
import json
import sys

from clocks import clock_of
from library import Library
from problem import Problem

device = Library(sys.argv[1]).open(sys.argv[2])
problem = Problem(device, clock_of(device, sys.argv[2], flushes=False), json.loads(sys.argv[3]), most_sets=1)
problem.launch(0)
device.synchronize()
