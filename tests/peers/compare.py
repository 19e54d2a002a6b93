#!/usr/bin/env python3
"""Paceline and tuned PyTorch side by side on one machine, in interleaved rounds.

  python3 tests/peers/compare.py --paceline build/release/bin/paceline --rounds 5 \\
      --out results/comparisons/mnist-pytorch
  python3 tests/peers/compare.py --workloads resnet50-cassava --precisions fp32 bf16 --batches 32 \\
      --threads 2 --steps 3 --warmup 1 --rounds 5 --out results/comparisons/resnet50-pytorch

Each round runs every configuration once with each program, PyTorch eager and compiled; a ratio is
of the median steps of one round, and the median over rounds is quoted against PyTorch's faster way.
Paceline trains on real samples it gathers each step (resnet50: synthetic ones, 300 x 300); PyTorch
repeats one batch that lies in memory.
Writes OUT.json (every step time) and OUT.md (the table). Needs torch and numpy.
"""
import argparse, json, os, platform, statistics, subprocess, sys, tempfile

FRAMEWORKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../sweeps/frameworks")


def run(command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def ours(a, workload, precision, batch, threads):
    command = [a.paceline, "train", workload, "--gpus=1", "--backend=self", "--device=cpu", f"--precision={precision}",
               f"--cpus-per-task={threads}", f"--batch-per-replica={batch}", f"--steps={a.steps}",
               "--evaluate=none", "--quiet", "--json"]
    if workload.startswith("resnet50"):
        command += ["--input=synthetic", "--weights=none"]
    with tempfile.TemporaryDirectory() as folder:
        out = run(command + [f"--record={folder}/record.json"])
    record = json.loads(out)
    return record["timing"]["step_seconds"][0]["p50"], record


def theirs(a, workload, precision, batch, threads, compiled):
    network = ["resnet50", "--v1", "--size=300"] if workload == "resnet50-cassava" else [workload]
    command = [os.path.join(FRAMEWORKS, "tuned"), sys.executable, os.path.join(FRAMEWORKS, "torch_train.py"), *network,
               f"--precision={precision}", f"--batch={batch}", f"--threads={threads}", f"--steps={a.steps}",
               f"--warmup={a.warmup}"]
    out = run(command + (["--compile"] if compiled else []), dict(os.environ, OMP_NUM_THREADS=str(threads)))
    result = json.loads(out.strip().splitlines()[-1])
    return result["median_step_seconds"], result


def machine():
    cpu = dict(line.split(":", 1) for line in open("/proc/cpuinfo").read().split("\n\n")[0].splitlines() if ":" in line)
    cpu = {key.strip(): value.strip() for key, value in cpu.items()}
    kind = f" (family {cpu['cpu family']}, model {cpu['model']})" if "cpu family" in cpu else ""
    return f"{cpu.get('model name', '?')}{kind}, {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--paceline", default="build/release/bin/paceline")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=600)
    p.add_argument("--warmup", type=int, default=50, help="steps of PyTorch that are not counted")
    p.add_argument("--workloads", nargs="+", default=["mnist-mlp", "mnist-cnn"])
    p.add_argument("--precisions", nargs="+", default=["fp32"], choices=["fp32", "bf16"])
    p.add_argument("--batches", type=int, nargs="+", default=[64, 128])
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    p.add_argument("--eager-only", action="store_true", help="leave torch.compile out (no C++ compiler, or little time)")
    p.add_argument("--out", required=True)
    a = p.parse_args()
    cells = [(w, p, b, t) for w in a.workloads for p in a.precisions for b in a.batches for t in a.threads]
    times = {cell: {"paceline": [], "eager": [], "compiled": []} for cell in cells}
    facts = {}
    for number in range(a.rounds):
        for cell in cells:
            seconds, record = ours(a, *cell)
            times[cell]["paceline"].append(seconds)
            facts["paceline"] = record["provenance"]
            for way in ["eager"] + ([] if a.eager_only else ["compiled"]):
                seconds, result = theirs(a, *cell, way == "compiled")
                times[cell][way].append(seconds)
                facts["pytorch"] = result["version"]
            print(f"round {number + 1}/{a.rounds} {cell}: " + ", ".join(
                f"{way} {1e3 * all_[-1]:.3f} ms" for way, all_ in times[cell].items() if all_), file=sys.stderr)
    rows, lines = [], []
    for cell in cells:
        ways = {way: all_ for way, all_ in times[cell].items() if all_ and way != "paceline"}
        best = min(ways, key=lambda way: statistics.median(ways[way]))
        ratios = [theirs_ / ours_ for theirs_, ours_ in zip(ways[best], times[cell]["paceline"])]
        rows.append({"workload": cell[0], "precision": cell[1], "batch_per_replica": cell[2],
                     "threads": cell[3], "pytorch_faster_way": best,
                     "ratio_median": statistics.median(ratios), "ratios": ratios, "step_seconds": times[cell]})
        ms = [1e3 * statistics.median(x) for x in (times[cell]["paceline"], ways[best])]
        lines.append(f"| {cell[0]} | {cell[1]} | {cell[2]} | {cell[3]} | {ms[0]:.3f} | {ms[1]:.3f} ({best}) | "
                     f"**{statistics.median(ratios):.2f}** | {min(ratios):.2f} to {max(ratios):.2f} |")
    provenance = facts["paceline"]
    head = [f"Median training step in ms; ratio = PyTorch / Paceline, median of {a.rounds} interleaved rounds.", "",
            f"Machine: {machine()}. Paceline {provenance['version']} ({provenance['commit']}), {provenance['libraries']}; "
            f"PyTorch {facts['pytorch']}, tuned, the faster of eager and compiled"
            + (" (only eager was run)." if a.eager_only else "."), "",
            f"Repeat: `python3 tests/peers/compare.py {' '.join(sys.argv[1:])}`", "",
            "| workload | precision | batch | threads | Paceline ms | PyTorch ms | ratio | range |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    os.makedirs(os.path.dirname(a.out) or ".", exist_ok=True)
    with open(a.out + ".json", "w") as file:
        json.dump({"machine": machine(), "paceline": {k: provenance[k] for k in ("version", "commit", "compiler", "libraries")},
                   "pytorch": facts["pytorch"], "rows": rows}, file, indent=1)
    with open(a.out + ".md", "w") as file:
        file.write("\n".join(head + lines) + "\n")
    print("\n".join(head + lines))


if __name__ == "__main__":
    main()
