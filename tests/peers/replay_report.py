#!/usr/bin/env python3
"""Compares the runs of replay_validation.py with what `paceline predict` says of them.

The program sees the calibration folder of a series and nothing else. A point is the median rate of
its runs. Writes OUT.md and OUT.json.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys

LAWS = ("ideal", "amdahl", "usl", "log_p", "sqrt_p", "ring")


def predict(paceline, folder, sizes, change):
    command = [paceline, "predict", folder, "--gpus", ",".join(map(str, sorted(sizes))), "--json"]
    if change:
        command += ["--what-if", change]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)}: {ran.stderr}")
    tables = json.loads(ran.stdout)["tables"]
    ignored = [note for table in tables for note in table.get("notes", []) if note.startswith("ignored")]
    if ignored:
        sys.exit(f"{' '.join(command)}: {ignored[0]}")
    rows = [row for table in tables for row in table["rows"]]
    return {row["gpus"]: row for row in rows if row.get("kind") == "predicted"}


def median_rate(folder):
    rates = []
    for file in glob.glob(os.path.join(glob.escape(folder), "*.json")):
        with open(file) as opened:
            rates.append(json.load(opened)["throughput"]["samples_per_second"])
    return statistics.median(rates), len(rates)


def change_of(name):
    """A folder of checks, "gpus=8,wire=bf16": the size, and the change as --what-if has it."""
    size, _, change = name.partition(",")
    return int(size.removeprefix("gpus=")), change.replace("wire=", "precision-on-the-wire=")


def points_of(args):
    checks = os.path.join(args.runs, "checks")
    for series in sorted(os.listdir(checks)):
        backend_and_workload, rate = series.rsplit("-", 1)
        wanted = {}
        for name in sorted(os.listdir(os.path.join(checks, series))):
            size, change = change_of(name)
            wanted.setdefault((series, change), {})[size] = median_rate(os.path.join(checks, series, name))
            # The same runs check twice the bandwidth, predicted from the slower links.
            slower = f"{backend_and_workload}-{int(rate) // 2}"
            if not change and os.path.isdir(os.path.join(args.runs, "calibration", slower)):
                wanted.setdefault((slower, "links=2x"), {})[size] = wanted[(series, change)][size]
        for (source, change), sizes in wanted.items():
            rows = predict(args.paceline, os.path.join(args.runs, "calibration", source), sizes, change)
            for size, (measured, runs) in sorted(sizes.items()):
                row = rows[size]
                point = {"series": source, "gpus": size, "change": change, "runs": runs,
                         "measured": measured, "replay": row["replay_samples_per_second"],
                         "low": row["replay_samples_per_second_low"],
                         "high": row["replay_samples_per_second_high"]}
                for law in LAWS if not change else ():
                    point[law] = row.get(f"law_{law}_samples_per_second")
                if not change:
                    point["laws"] = row.get("laws_samples_per_second")
                yield point


def off(point, by="replay"):
    return abs(point[by] / point["measured"] - 1) * 100


def line(name, points, by="replay"):
    errors = [off(p, by) for p in points if p.get(by)]
    if not errors:
        return ""
    return f"| {name} | {len(errors)} | {statistics.mean(errors):.1f} % | {max(errors):.1f} % |\n"


def write(args, points):
    with open(args.out + ".json", "w") as file:
        json.dump(points, file, indent=1)
    plain = [p for p in points if not p["change"]]
    covered = [p["low"] <= p["measured"] <= p["high"] for p in points]
    runs = sorted({p["runs"] for p in points})
    with open(args.out + ".md", "w") as file:
        file.write(f"""# The replay of a step, against real runs

Two ranks compute and the others sleep for recorded durations; links are network namespaces of
limited rate (`tests/peers/replay_validation.py`). The prediction sees runs of 2, 3 and 4 replicas
and all-reduces of 2 and 4; the checks are other runs, in the same interleaved rounds. A point is
the median of {' to '.join(map(str, sorted({runs[0], runs[-1]})))} runs. Errors are absolute, of samples/s.

| predicted by | points | mean | worst |
| --- | ---: | ---: | ---: |
""")
        file.write(line("**replay**, larger sizes", plain))
        file.write(line("laws, weighted", plain, "laws"))
        for law in LAWS:
            file.write(line(f"law {law}", plain, law))
        for change in sorted({p["change"].split("=")[0] for p in points if p["change"]}):
            file.write(line(f"replay, what if {change}", [p for p in points if p["change"].startswith(change)]))
        file.write(line("replay, all points", points))
        file.write(f"\nNominal 90 % intervals cover {sum(covered)} of {len(covered)} points "
                   f"({100 * sum(covered) / len(covered):.0f} %).\n\n"
                   "| series | replicas | what if | measured/s | replay/s | 90 % interval | error |\n"
                   "| --- | ---: | --- | ---: | ---: | --- | ---: |\n")
        for p in points:
            file.write(f"| {p['series']} | {p['gpus']} | {p['change']} | {p['measured']:.0f} | {p['replay']:.0f} | "
                       f"{p['low']:.0f} to {p['high']:.0f} | {100 * (p['replay'] / p['measured'] - 1):+.1f} % |\n")
        file.write("""
Repeat it, as root:

    python3 tests/peers/replay_validation.py --paceline build/release/replayed_compute/paceline --out runs
    python3 tests/peers/replay_report.py --paceline build/release/bin/paceline --runs runs --out results/comparisons/predict-replay
""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", required=True)
    parser.add_argument("--runs", required=True, help="--out of replay_validation.py")
    parser.add_argument("--out", required=True, help="path without .md and .json")
    args = parser.parse_args()
    write(args, list(points_of(args)))


main()
