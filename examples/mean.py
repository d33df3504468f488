"""The mean of vectors in a NumPy array, on the mesh (mean.dfl), and a plot of what algorithms take.

python examples/mean.py [plot.png]
"""

import sys
from pathlib import Path

import dflow
import numpy as np

PROGRAM = Path(__file__).with_name("mean.dfl")
WIDTH, HEIGHT = 16, 4
LENGTHS = (1, 4, 16, 64, 256)


def mean(x, algorithm="auto"):
    """The mean of x (rows and columns of PEs, elements) as every PE knows it, and its cycles."""
    height, width, n = x.shape
    params = {"width": width, "height": height, "n": n, "algorithm": algorithm}
    with dflow.Machine(dflow.compile(PROGRAM, params)) as machine:
        machine.copy_in("vectors", x)
        machine.launch("rest")
        machine.launch("all_reduce")
        total, cycles = machine.copy_out("vectors", count=n), machine.copy_out("cycles", count=1)
        return total / (width * height), cycles.max()


def measure():
    rng = np.random.default_rng(seed=1)
    table = {}
    for algorithm in ("chain", "star", "two_phase", "auto"):
        for n in LENGTHS:
            x = rng.random((HEIGHT, WIDTH, n), dtype=np.float32)
            result, cycles = mean(x, algorithm)
            expected = np.broadcast_to(x.mean(axis=(0, 1)), x.shape)
            np.testing.assert_allclose(result, expected, rtol=1e-5)
            table.setdefault(algorithm, []).append(cycles)
            print(f"{algorithm:>10} {n:4} elements: {cycles} cycles")
    return table


def plot(table, path):
    import matplotlib.pyplot as plt

    for algorithm, cycles in table.items():
        plt.loglog(LENGTHS, cycles, "o-", label=algorithm)
    plt.xlabel("elements of a vector")
    plt.ylabel("cycles until all PEs have it")
    plt.title(f"mean over {WIDTH} x {HEIGHT} PEs")
    plt.legend()
    plt.savefig(path)
    print(f"plot in {path}")


if __name__ == "__main__":
    measured = measure()
    if len(sys.argv) > 1:
        plot(measured, sys.argv[1])
