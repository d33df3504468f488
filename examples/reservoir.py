"""The pressure between two wells in rock of a NumPy array, on the mesh (reservoir.dfl), and a plot of it.

python examples/reservoir.py [plot.png]
"""

import sys
from pathlib import Path

import dflow
import numpy as np

PROGRAM = Path(__file__).with_name("reservoir.dfl")
TOLERANCE, ITERATIONS = 1e-5, 2000


def solve(k, variant="jacobi"):
    """Pressures for permeabilities k[y, x, z], iterations, and cycles of the solution."""
    ny, nx, nz = k.shape
    first = np.zeros(k.shape, np.float32)
    first[0, 0] = 1.0
    fixed = np.zeros((ny, nx, 2), np.uint16)
    fixed[0, 0, 1] = fixed[-1, -1, 1] = nz
    params = {"nx": nx, "ny": ny, "nz": nz, "variant": variant}
    with dflow.Machine(dflow.compile(PROGRAM, params)) as machine:
        machine.copy_in("cg_permeability", k.astype(np.float32))
        # Lengths of a cell, mobility, its rise with permeability.
        machine.launch("cg_prepare", *np.float32([1, 1, 1, 1, 0]))
        machine.copy_in("cg_pressure", first)
        machine.copy_in("cg_fixed", fixed)
        machine.launch("cg_solve", np.float32(TOLERANCE), np.uint32(ITERATIONS))
        end, iterations, *_ = machine.copy_out("cg_result", count=8)[0, 0]
        if end != 0:
            raise RuntimeError(f"no solution after {iterations} iterations (end {end})")
        cycles = machine.copy_out("cg_result", count=8)[0, 0, 6]
        return machine.copy_out("cg_pressure", count=nz), int(iterations), int(cycles)


def channel(nx, ny, nz):
    """A channel that winds through tight rock."""
    y, x, _ = np.indices((ny, nx, nz))
    middle = ny * (x / nx + 0.25 * np.sin(2 * np.pi * x / nx))
    return np.where(np.abs(y - middle) < 2, 1000.0, 1.0).astype(np.float32)


def plot(k, p, path):
    import matplotlib.pyplot as plt

    ny, nx, nz = k.shape
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    figure.suptitle(f"means of columns of {nz} cells, one column on each of {nx} x {ny} PEs")
    maps = [(np.log10(k), "viridis", "log10 of the permeability"), (p, "RdYlBu_r", "pressure")]
    for axis, (field, colors, title) in zip(axes, maps):
        image = axis.imshow(field.mean(axis=2), cmap=colors)
        figure.colorbar(image, ax=axis)
        axis.set(title=title, xlabel="x, cells", ylabel="y, cells")
    figure.savefig(path)
    print(f"plot in {path}")


if __name__ == "__main__":
    rock = channel(16, 12, 6)
    for variant in ("fast", "jacobi"):
        pressure, iterations, cycles = solve(rock, variant)
        print(f"{variant:>7}: {iterations} iterations in {cycles} cycles, pressure {pressure.min():.3f} to {pressure.max():.3f}")
    if len(sys.argv) > 1:
        plot(rock, pressure, sys.argv[1])
