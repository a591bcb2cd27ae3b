"""What `heddle profile` starts under the profiler: one call of an operation on random inputs.

    python3 launch.py LIBRARY DEVICE CASE        CASE as bench.py has it, in JSON"""
import json
import os
import sys

# The folder's modules are those of a package: so they hide none of others that have their names.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(sys.path[0], "python"))
from heddle.library import Library  # noqa: E402
from measure.clocks import clock_of  # noqa: E402
from measure.problem import Problem  # noqa: E402

device = Library(sys.argv[1]).open(sys.argv[2])
problem = Problem(device, clock_of(device, sys.argv[2], flushes=False), json.loads(sys.argv[3]), most_sets=1)
problem.launch(0)
device.synchronize()
