#!/usr/bin/env python3
"""`paceline history` beside Apache Otava on the same simulated series of nights.

Each series is written as a published table and read by the program as users run it. Otava (its defaults:
windows of 50, p < 0.001) gets the same values. A found shift counts if it is at the true night or up to two
nights beside it, and found when four or five nights have passed since; any other is false.

    python3 -m venv venv && venv/bin/pip install apache-otava
    venv/bin/python tests/peers/history_otava.py build/release/bin/paceline > results/comparisons/history.md
"""
import csv
import datetime
import json
import logging
import math
import pathlib
import random
import subprocess
import sys
import tempfile
from importlib.metadata import version

from otava.analysis import compute_change_points

NIGHTS, NOISE, SIZE = 365, 0.01, 0.03
KINDS = {
    "noise": {},
    "noise of 5 %": {"noise": 0.05},
    "heavy tails (t, 3 degrees of freedom)": {"tails": True},
    "spikes of 10 % in 3 % of nights": {"spikes": 0.03},
    "15 % of nights missing": {"missing": 0.15},
    "weekends 2 % slower": {"weekend": 0.02},
    "drift of 3 % a year": {"drift": 0.03},
    "season of 2 %": {"season": 0.02},
    "neighbours resemble (r = 0.4)": {"resemblance": 0.4},
    "neighbours resemble (r = 0.8)": {"resemblance": 0.8},
    "two modes, 30 % of nights 4 % slower": {"modes": 0.3},
    "noise of 0.5 %, then of 3 %": {"noise": 0.005, "wider": 6},
    "three nights 5 % slower": {"spell": 3},
}
FOUND = ["noise", "heavy tails (t, 3 degrees of freedom)", "15 % of nights missing", "weekends 2 % slower",
         "drift of 3 % a year"]


def nights(draw, noise=NOISE, tails=False, spikes=0, missing=0, weekend=0, drift=0, season=0, resemblance=0,
           modes=0, wider=1, spell=0):
    """[(day, log of the time)]"""
    made, kept = [], draw.gauss(0, 1)
    for day in range(NIGHTS):
        deviation = draw.gauss(0, 1)
        if tails:
            deviation /= math.sqrt(sum(draw.gauss(0, 1) ** 2 for _ in range(3)))
        kept = resemblance * kept + math.sqrt(1 - resemblance**2) * deviation
        value = noise * kept * (wider if day >= NIGHTS / 2 else 1)
        value += drift * day / NIGHTS + season * math.sin(2 * math.pi * day / 365)
        value += weekend if day % 7 >= 5 else 0
        value += 10 * noise if draw.random() < spikes else 0
        value += 0.04 if modes and draw.random() < modes else 0
        value += 0.05 if 150 <= day < 150 + spell else 0
        if draw.random() >= missing:
            made.append((day, value))
    return made


def by_otava(series):
    found, _ = compute_change_points([math.exp(value) for _, value in series])
    return [(point.index, point.stats.mean_2 > point.stats.mean_1) for point in found]


TABLE = {
    "record": {"parameters": {"workload": "simulated", "batch_per_replica": 32}, "layout": {"replicas_are": "gpus"},
               "provenance": {"source": "tests/peers/history_otava.py", "rate_is": "simulated"}},
    "columns": {"date": {"to": ["/session", "/provenance/started_at", "/provenance/stack"], "text": True},
                "gpus": {"to": ["/layout/gpus", "/parameters/gpus"]},
                "rate": {"to": ["/throughput/samples_per_second"]}},
}


def by_paceline(program, series):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "table.json").write_text(json.dumps(TABLE))
        first = datetime.date(2026, 1, 5)
        with open(path / "table.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["date", "gpus", "rate"])
            for day, value in series:
                writer.writerow([first + datetime.timedelta(day), 1, f"{1000 * math.exp(-value):.6f}"])
        out = subprocess.run([program, "history", folder, "--metric", "throughput", "--json"], check=True,
                             capture_output=True, text=True).stdout
    found = json.loads(out)["history"][0]["shifts"]
    index = {str(first + datetime.timedelta(day)): at for at, (day, _) in enumerate(series)}
    return [(index[shift["date"]], shift["worse"]) for shift in found]


def found_within_five(method, kind, count):
    found = 0
    for number in range(count):
        draw = random.Random(50000 + number)
        series, rises = nights(draw, **KINDS[kind]), number % 2 == 0
        at = draw.randrange(60, len(series) - 5)
        shifted = [(day, value + (SIZE if rises else -SIZE) * (i >= at)) for i, (day, value) in enumerate(series)]
        found += any(abs(where - at) <= 2 and up == rises
                     for passed in (4, 5) for where, up in method(shifted[:at + passed]))
    return found / count


def main():
    logging.disable(logging.CRITICAL)
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    ours = lambda series: by_paceline(program, series)
    print("# `paceline history` beside Apache Otava\n")
    print(f"Simulated series of {NIGHTS} nights, noise {100 * NOISE:g} % unless stated, the same for both. Otava "
          f"{version('apache-otava')} with its defaults. {count} series a line.\n")
    print("False shifts a year and series, where nothing changed (a drift, a season and weekends are no shifts):\n")
    print("| series | Paceline | Otava |\n| --- | ---: | ---: |")
    for kind, how in KINDS.items():
        made = [nights(random.Random(number), **how) for number in range(count)]
        rates = [sum(len(method(series)) for series in made) / count for method in (ours, by_otava)]
        print(f"| {kind} | {rates[0]:.3f} | {rates[1]:.3f} |", flush=True)
    print(f"\nShifts of {100 * SIZE:g} % (three times the noise, up and down in turn) found at the right night and in "
          "the right direction within five nights. Differences of two points are within the error of so few series:\n")
    print("| series | Paceline | Otava |\n| --- | ---: | ---: |")
    for kind in FOUND:
        rates = [found_within_five(method, kind, count) for method in (ours, by_otava)]
        print(f"| {kind} | {100 * rates[0]:.1f} % | {100 * rates[1]:.1f} % |", flush=True)
    print("\nAgain, in minutes:\n\n"
          "    python3 -m venv venv && venv/bin/pip install apache-otava\n"
          "    venv/bin/python tests/peers/history_otava.py build/release/bin/paceline "
          "> results/comparisons/history.md")


if __name__ == "__main__":
    main()
