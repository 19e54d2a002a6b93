#!/usr/bin/env python3
"""`paceline history` and Apache Otava on annotated series: the Turing change point data set.

Scores are those of van den Burg and Williams, "An evaluation of change point detection algorithms", 2020: F1
with a margin of five sessions, and covering, each a mean over the series. Series of several variables are
left out, and so are those that the data set only downloads.

    git clone https://github.com/alan-turing-institute/TCPD && git -C TCPD checkout 83b3039
    venv/bin/python tests/peers/history_tcpd.py build/release/bin/paceline TCPD
"""
import json
import logging
import pathlib
import statistics
import sys

from history_otava import by_otava, by_paceline

MARGIN = 5


def load(folder):
    """{name: (values, {annotator: change points})}"""
    annotations = json.loads(next(folder.rglob("annotations.json")).read_text())
    series = {}
    for path in sorted(folder.rglob("*.json")):
        made = json.loads(path.read_text())
        if "series" in made and made["n_dim"] == 1 and made["name"] in annotations:
            series[made["name"]] = (made["series"][0]["raw"], annotations[made["name"]])
    return series


def matched(truth, found):
    left, count = set(found), 0
    for at in sorted(truth):
        close = sorted((abs(at - other), other) for other in left if abs(at - other) <= MARGIN)
        if close:
            left.remove(close[0][1])
            count += 1
    return count


def f1(annotators, found):
    truths, found = [{0, *points} for points in annotators], {0, *found}
    precision = matched(set().union(*truths), found) / len(found)
    recall = statistics.mean(matched(truth, found) / len(truth) for truth in truths)
    return 2 * precision * recall / (precision + recall)


def parts(points, count):
    ends = sorted({*points, count} - {0})
    return [set(range(begin, end)) for begin, end in zip([0, *ends], ends)]


def covering(annotators, found, count):
    ours = parts(found, count)
    return statistics.mean(
        sum(len(part) * max(len(part & other) / len(part | other) for other in ours) for part in parts(points, count))
        / count for points in annotators)


def scores(annotators, found, count):
    return f1(annotators, found), covering(annotators, found, count)


def among_annotators(annotators, count):
    rest = [(annotators[:k] + annotators[k + 1:], points) for k, points in enumerate(annotators)]
    return tuple(statistics.mean(score) for score in zip(*(scores(others, own, count) for others, own in rest)))


def main():
    logging.disable(logging.CRITICAL)
    program, series = sys.argv[1], load(pathlib.Path(sys.argv[2]))
    methods = {"Paceline": lambda known: by_paceline(program, known), "Otava": by_otava, "no change at all": lambda _: []}
    rows = {name: [] for name in [*methods, "one annotator against the others"]}
    for name, (raw, annotated) in series.items():
        annotators, count = list(annotated.values()), len(raw)
        values = [value for value in raw if value is not None]
        mean, spread = statistics.mean(values), statistics.pstdev(values)
        known = [(at, 0.01 * (value - mean) / spread) for at, value in enumerate(raw) if value is not None]
        for method, find in methods.items():
            rows[method].append(scores(annotators, {known[at][0] for at, _ in find(known)}, count))
        rows["one annotator against the others"].append(among_annotators(annotators, count))
        print(name, *(f"{rows[method][-1][0]:.2f}" for method in rows), file=sys.stderr)
    print(f"\n## Annotated series\n\nThe {len(series)} series of one variable that the Turing change point data set "
          "(TCPD, 83b3039) holds, each annotated by five people: prices,\npopulations, gases, a well's log. Defaults "
          f"of both; F1 with a margin of {MARGIN}, and covering, as in the data set's paper.\n")
    print("| method | F1 | covering |\n| --- | ---: | ---: |")
    for method, made in rows.items():
        means = [statistics.mean(score) for score in zip(*made)]
        print(f"| {method} | {means[0]:.3f} | {means[1]:.3f} |")
    print("\nMost of these series wander, rise or have seasons. A change of a slope or of a season is a change point to "
          "the annotators, but no level shift.\nA change over more than a tenth of a series has no date: prices that fall "
          "for months, say.\n\nAgain, in seconds:\n\n"
          "    git clone https://github.com/alan-turing-institute/TCPD && git -C TCPD checkout 83b3039\n"
          "    venv/bin/python tests/peers/history_tcpd.py build/release/bin/paceline TCPD "
          ">> results/comparisons/history.md")


if __name__ == "__main__":
    main()
