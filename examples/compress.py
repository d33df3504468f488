"""A field in a NumPy array, compressed and restored on the mesh (compress.dfl), and a plot of ratio and error.

python examples/compress.py [plot.png]      (dflowc on the path)
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

PROGRAM = Path(__file__).with_name("compress.dfl")
BOUNDS = (1e-1, 1e-2, 1e-3, 1e-4)


def round_trip(field, bound, **params):
    """The restored field, and the ratio of its size to that of the stream."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "field.npy"), Path(folder, "restored.npy")
        np.save(before, field.ravel())
        command = ["dflowc", "run", PROGRAM, "--input", f"field={before}", "--output", f"restored={after}"]
        for name, value in {"abs": bound, **params}.items():
            command += ["--set", f"{name}={value}"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        words = int(re.search(r"in (\d+) words", said).group(1))
        return np.load(after).reshape(field.shape), field.size / words


def measure():
    x, y = np.meshgrid(np.linspace(0, 6, 128), np.linspace(0, 4, 64))
    field = (np.sin(x) * np.cos(3 * y)).astype(np.float32)
    rows = []
    for bound in BOUNDS:
        restored, ratio = round_trip(field, bound, rows=4, cols=8)
        error = np.abs(restored.astype(np.float64) - field).max()
        assert error <= bound
        rows.append((bound, ratio, error))
        print(f"bound {bound:g}: ratio {ratio:.2f}, largest error {error:.3g}")
    return rows


def plot(rows, path):
    import matplotlib.pyplot as plt

    bounds, ratios, _ = zip(*rows)
    plt.semilogx(bounds, ratios, "o-")
    plt.xlabel("error bound, in the unit of the field")
    plt.ylabel("ratio, bytes to bytes")
    plt.title("64 x 128 values on 4 x 8 PEs")
    plt.savefig(path)
    print(f"plot in {path}")


if __name__ == "__main__":
    measured = measure()
    if len(sys.argv) > 1:
        plot(measured, sys.argv[1])
