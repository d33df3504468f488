#!/usr/bin/env cs_python
"""Runs axpy on the mesh and compares with NumPy."""

import argparse
import json

import numpy as np
from cerebras.sdk.runtime.sdkruntimepybind import MemcpyDataType, MemcpyOrder, SdkRuntime

parser = argparse.ArgumentParser()
parser.add_argument("--name", help="folder that cslc wrote")
name = parser.parse_args().name
with open(f"{name}/out.json", encoding="utf-8") as file:
    params = json.load(file)["params"]
width, n = int(params["width"]), int(params["n"])

rng = np.random.default_rng(seed=1)
x = rng.random(width * n, dtype=np.float32)
y = rng.random(width * n, dtype=np.float32)
result = np.zeros_like(y)

copy = {
    "streaming": False,
    "data_type": MemcpyDataType.MEMCPY_32BIT,
    "order": MemcpyOrder.ROW_MAJOR,
    "nonblock": False,
}
runner = SdkRuntime(name)
runner.load()
runner.run()
runner.memcpy_h2d(runner.get_id("x"), x, 0, 0, width, 1, n, **copy)
runner.memcpy_h2d(runner.get_id("y"), y, 0, 0, width, 1, n, **copy)
runner.launch("axpy", np.float32(2.5), nonblock=False)
runner.memcpy_d2h(result, runner.get_id("y"), 0, 0, width, 1, n, **copy)
runner.stop()

np.testing.assert_allclose(result, 2.5 * x + y, rtol=1e-6)
print("SUCCESS")
