"""Draws loss.csv as a small picture: training loss and the two validation losses over tokens."""

import argparse
import csv
import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--work", required=True)
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    with open(os.path.join(args.work, "loss.csv"), newline="") as f:
        rows = [[float(x) for x in row] for row in csv.reader(f)]
    million = 1e6
    fig, ax = plt.subplots(figsize=(6, 3.6), dpi=100)
    ax.plot([r[1] / million for r in rows], [r[3] for r in rows], lw=0.8, color="0.6", label="training mixture")
    checks = [r for r in rows if len(r) > 4]
    ax.plot([r[1] / million for r in checks], [r[4] for r in checks], lw=1.5, color="tab:blue",
            label="held-out simulator stories")
    ax.plot([r[1] / million for r in checks], [r[5] for r in checks], lw=1.5, color="tab:orange",
            label="held-out prose")
    ax.set_xlabel("million tokens")
    ax.set_ylabel("nats per token")
    ax.set_ylim(0, 6)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    fig.tight_layout()
    fig.savefig(args.out)


if __name__ == "__main__":
    main()
