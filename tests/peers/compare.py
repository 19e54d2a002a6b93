#!/usr/bin/env python3
"""Paceline beside every peer on one machine, in interleaved rounds: which peer is the fastest, and by what.

  peers/bin/python tests/peers/compare.py --paceline build/release/bin/paceline
  peers/bin/python tests/peers/compare.py --only mnist --rounds 5 --out results/comparisons

Peers are PyTorch (eager, compiled), TensorFlow (tf.function, XLA) and JAX (jit). A round runs Paceline
and then a peer, each in a process of its own on the same CPUs, for every peer; a ratio is of the median
steps of two such adjacent runs. The first round tries all settings of a peer, and later ones its best. A
peer that took more than --within times as long as the fastest there is left out of later rounds.

Every run is checked: parameters, global batch and precision are Paceline's, and the loss falls.
GPT-2 is compared with PyTorch, at 1,024 tokens a step in samples of 256 and of 1,024.
Writes mnist-peers, resnet50-peers and gpt2-peers, each as .json (every run) and .md (the tables), below --out.
Needs torch, tensorflow-cpu (or tensorflow) and jax in the Python that runs this.
"""
import argparse, json, os, platform, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMEWORKS = os.path.join(HERE, "../../sweeps/frameworks")

# Peer: program, then its settings for each study: name to arguments and environment.
PEERS = {
    "PyTorch eager": ("torch_train.py", {
        "mnist": {"channels_last": ([], {}), "NCHW": (["--nchw"], {})},
        "resnet50": {"channels_last": ([], {})}, "gpt2": {"eager": ([], {})}}),
    "PyTorch compiled": ("torch_train.py", {
        "mnist": {"default": (["--compile"], {}), "max-autotune": (["--compile", "--autotune"], {})},
        "resnet50": {"default": (["--compile"], {})}, "gpt2": {"default": (["--compile"], {})}}),
    "TensorFlow": ("tf_train.py", {
        "mnist": {"oneDNN": ([], {}), "without oneDNN": ([], {"TF_ENABLE_ONEDNN_OPTS": "0"})},
        "resnet50": {"oneDNN": ([], {})}}),
    "TensorFlow XLA": ("tf_train.py", {
        "mnist": {"jit_compile": (["--jit"], {})},
        "resnet50": {"jit_compile": (["--jit"], {})}}),
    "JAX": ("jax_train.py", {
        "mnist": {"a step a call": ([], {}), "ten steps a call": (["--scan"], {})},
        "resnet50": {"a step a call": ([], {})}}),
}

STUDIES = {
    "mnist": {
        "title": "MNIST", "rounds": 5, "steps": 300, "warmup": 50, "block": 10, "falls_within": 20,
        "cells": [(workload, "fp32", batch, threads) for workload in ("mnist-mlp", "mnist-cnn")
                  for batch in (64, 128) for threads in (1, 2)],
        "ours": lambda batch: [], "theirs": lambda workload, batch: [workload]},
    "resnet50": {
        "title": "ResNet-50", "rounds": 3, "steps": 3, "warmup": 1, "block": 1, "falls_within": 4,
        "cells": [("resnet50-cassava", precision, 32, 2) for precision in ("fp32", "bf16")],
        "ours": lambda batch: ["--input=synthetic", "--weights=none", "--variant=v1.5"],
        "theirs": lambda workload, batch: ["resnet50", "--size=300", "--bias"]},
    "gpt2": {
        "title": "GPT-2", "rounds": 5, "steps": 3, "warmup": 1, "block": 1, "falls_within": 4, "rises": 1.1,
        "program": "torch_gpt.py", "tokens": 1024,
        "cells": [("gpt2-124m", precision, batch, 2) for batch in (4, 1) for precision in ("fp32", "bf16")],
        "ours": lambda batch: ["--input=synthetic", "--weights=none", f"--context-length={1024 // batch}"],
        "theirs": lambda workload, batch: [f"--model={workload}", f"--context={1024 // batch}"]},
}


def run(command, threads, environment=None):
    """The output of a process that has the first `threads` of this process' CPUs."""
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    done = subprocess.run(command, capture_output=True, text=True,
                          env=dict(os.environ, OMP_NUM_THREADS=str(threads), CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu",
                                   **(environment or {})),
                          preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def train_ours(a, study, cell, more):
    workload, precision, batch, threads = cell
    with tempfile.TemporaryDirectory() as folder:
        return json.loads(run([a.paceline, "train", workload, "--gpus=1", "--backend=self", "--device=cpu",
                               f"--precision={precision}", f"--cpus-per-task={threads}", f"--batch-per-replica={batch}",
                               "--evaluate=none", "--quiet", "--json", f"--record={folder}/record.json",
                               *STUDIES[study]["ours"](batch), *more], threads))


def check_ours(a, study, cell):
    """Trains on one batch again and again, as the peers do. Returns the first loss and the last."""
    steps = STUDIES[study]["falls_within"]
    record = train_ours(a, study, cell, [f"--train-limit={cell[2]}", f"--epochs={steps}"])
    losses = [epoch["train_loss"] for epoch in record["quality"]["epochs"]]
    if not losses[-1] < losses[0]:
        sys.exit(f"Paceline's loss does not fall in {steps} steps of {cell[0]}: {losses[0]:.4g} to {losses[-1]:.4g}")
    return losses[0], losses[-1]


def measure_ours(a, study, cell):
    record = train_ours(a, study, cell, [f"--steps={a.steps or STUDIES[study]['steps']}"])
    load = record["provenance"].get("machine_load", {})
    return {"step_seconds": record["timing"]["step_seconds"][0]["p50"], "probe": record["probe"],
            "flops_per_step": record["plan"]["flops_per_sample"] * cell[2], "busy": load.get("why") if load.get("busy") else None,
            "parameter_count": record["plan"]["parameter_count"], "global_batch": record["plan"]["global_batch"],
            "precision": record["parameters"]["precision"], "provenance": record["provenance"]}


def measure_peer(a, study, cell, peer, setting):
    workload, precision, batch, threads = cell
    program, settings = PEERS[peer]
    arguments, environment = settings[study][setting]
    s = STUDIES[study]
    program = s.get("program", program)
    is_jax = program == "jax_train.py"
    threaded = [] if is_jax else [f"--threads={threads}"]  # JAX takes the CPUs that it has
    out = run([os.path.join(FRAMEWORKS, "tuned"), sys.executable, os.path.join(HERE if is_jax else FRAMEWORKS, program),
               *s["theirs"](workload, batch),
               f"--precision={precision}", f"--batch={batch}", f"--steps={a.steps or s['steps']}", f"--warmup={s['warmup']}",
               f"--block={s['block']}", *threaded, *arguments], threads, environment)
    result = json.loads(out.strip().splitlines()[-1])
    result["step_seconds"] = statistics.median(result["step_seconds"])
    return result


def check_peer(peer, ours, theirs, rises=1):
    """Exits if the peer did other work than Paceline. Adam's first steps without a warm-up may raise a loss: `rises` times."""
    for key in ("parameter_count", "global_batch", "precision"):
        if theirs[key] != ours[key]:
            sys.exit(f"unequal work: {key} of {peer} is {theirs[key]}, Paceline's is {ours[key]}")
    if not theirs["loss"] < rises * theirs["first_loss"]:
        sys.exit(f"the loss of {peer} does not fall: {theirs['first_loss']:.4g} to {theirs['loss']:.4g}")


def ratios(pairs):
    return [pair["theirs"] / pair["ours"] for pair in pairs]


def choose_setting(tried):
    """The setting of a peer, {name: pair of the first round}, with the lowest ratio."""
    return min(tried, key=lambda setting: ratios([tried[setting]]))


def keep_near(first, within):
    """The peers, {name: pair of the first round}, that took at most `within` times as long as the fastest."""
    ratio = {peer: ratios([pair])[0] for peer, pair in first.items()}
    return [peer for peer in first if ratio[peer] <= within * min(ratio.values())]


def summarize(pairs):
    """Paired figures of {peer: pairs}; a pair has seconds of ours and theirs and those at the probed peak.

    The fastest is the peer of the lowest median ratio among those of most rounds.
    """
    peers = {}
    for peer, all_ in pairs.items():
        r = ratios(all_)
        peers[peer] = {"rounds": len(all_), "step_seconds": statistics.median(pair["theirs"] for pair in all_),
                       "ratio": statistics.median(r), "ratio_low": min(r), "ratio_high": max(r),
                       "share_of_peak": statistics.median(pair["limit"] / pair["theirs"] for pair in all_)}
    most = max(summary["rounds"] for summary in peers.values())
    ours = [pair for all_ in pairs.values() for pair in all_]
    return {"fastest": min((p for p in peers if peers[p]["rounds"] == most), key=lambda p: peers[p]["ratio"]), "peers": peers,
            "step_seconds": statistics.median(pair["ours"] for pair in ours),
            "share_of_peak": statistics.median(pair["limit"] / pair["ours"] for pair in ours)}


def chosen_cells(study, names):
    cells = STUDIES[study]["cells"]
    if not names:
        return cells
    by_name = {}
    for cell in cells:
        by_name.setdefault(f"{cell[0]}:{cell[2]}:{cell[3]}", []).append(cell)
    unknown = [name for name in names.split(",") if name not in by_name]
    if unknown:
        sys.exit(f"--cells: unknown {', '.join(unknown)}; choose from {', '.join(by_name)}")
    return [cell for name in names.split(",") for cell in by_name[name]]


def measure(a, study):
    """Runs all rounds of a study, and yields after each its cells, with every pair, and the versions of all programs."""
    rounds = a.rounds or STUDIES[study]["rounds"]
    cells = [{"cell": cell, "pairs": {}, "settings": {}, "losses": {}, "probes": [], "busy": 0, "runs": 0}
             for cell in chosen_cells(study, a.cells)]
    versions = {}

    def pair(c, peer, setting):
        ours, theirs = measure_ours(a, study, c["cell"]), measure_peer(a, study, c["cell"], peer, setting)
        check_peer(peer, ours, theirs, STUDIES[study].get("rises", 1))
        provenance = ours["provenance"]
        versions["Paceline"] = f"{provenance['version']} ({provenance['commit']}), {provenance['libraries'].rsplit(', ', 1)[0]}"
        versions[peer.split()[0]] = ", ".join([theirs["version"], *filter(None, [theirs.get("libraries")])])
        c["losses"][peer] = [theirs["first_loss"], theirs["loss"]]
        c["probes"].append(ours["probe"])
        c["runs"] += 1
        c["busy"] += ours["busy"] is not None
        c["parameter_count"], c["flops_per_step"] = ours["parameter_count"], ours["flops_per_step"]
        print(f"{study} {c['cell']} {peer} ({setting}): {1e3 * theirs['step_seconds']:.3f} ms, Paceline "
              f"{1e3 * ours['step_seconds']:.3f} ms", file=sys.stderr, flush=True)
        return {"ours": ours["step_seconds"], "theirs": theirs["step_seconds"],
                "limit": ours["flops_per_step"] / ours["probe"]["flops_per_second"]}

    for number in range(rounds):
        print(f"{study}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for c in cells:
            if number == 0:
                c["losses"]["Paceline"] = check_ours(a, study, c["cell"])
                for peer, settings in ((peer, all_) for peer, (_, all_) in PEERS.items() if study in all_):
                    tried = {setting: pair(c, peer, setting) for setting in settings[study]}
                    best = choose_setting(tried)
                    c["settings"][peer] = {"best": best, "tried": tried}
                    c["pairs"][peer] = [tried[best]]
                c["near"] = keep_near({peer: pairs[0] for peer, pairs in c["pairs"].items()}, a.within)
            else:
                for peer in c["near"]:
                    c["pairs"][peer].append(pair(c, peer, c["settings"][peer]["best"]))
        yield cells, versions


def machine():
    with open("/proc/cpuinfo") as file:
        cpu = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    cpu = {key.strip(): value.strip() for key, value in cpu.items()}
    kind = f" (family {cpu['cpu family']}, model {cpu['model']})" if "cpu family" in cpu else ""
    return f"{cpu.get('model name', '?')}{kind}, {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}"


def to_range(summary):
    """The range of a ratio; a single round has none."""
    return f"{summary['ratio_low']:.2f} to {summary['ratio_high']:.2f}" if summary["rounds"] > 1 else ""


def markdown(study, cells, versions, within, command):
    rows = [(c, summarize(c["pairs"])) for c in cells]
    rounds = max(p["rounds"] for _, s in rows for p in s["peers"].values())
    busy, runs = sum(c["busy"] for c in cells), sum(c["runs"] for c in cells)
    lines = [f"# {STUDIES[study]['title']}: training steps beside the fastest peer", "",
             f"Median training step in ms. A ratio is the peer's step over Paceline's in two adjacent runs: median of {rounds} "
             f"interleaved rounds, and range.", "",
             "| workload | precision | batch | threads | Paceline ms | fastest peer | its ms | ratio | range | Paceline of the peak |",
             "| --- | --- | ---: | ---: | ---: | --- | ---: | ---: | --- | ---: |"]
    for c, s in rows:
        workload, precision, batch, threads = c["cell"]
        best = s["peers"][s["fastest"]]
        lines.append(f"| {workload} | {precision} | {batch} | {threads} | {1e3 * s['step_seconds']:.3f} | {s['fastest']} | "
                     f"{1e3 * best['step_seconds']:.3f} | **{best['ratio']:.2f}** | {to_range(best)} | "
                     f"{100 * s['share_of_peak']:.0f} % |")
    tokens = STUDIES[study].get("tokens")  # of a step
    lines += ["", "All peers, each at the best of its settings:", "",
              f"| workload | precision | batch | threads | peer | setting | rounds | ms | {'tokens' if tokens else 'samples'}/s | ratio | range | of the peak |",
              "| --- | --- | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | --- | ---: |"]
    for c, s in rows:
        workload, precision, batch, threads = c["cell"]
        for peer, p in sorted(s["peers"].items(), key=lambda item: item[1]["ratio"]):
            lines.append(f"| {workload} | {precision} | {batch} | {threads} | {peer} | {c['settings'][peer]['best']} | "
                         f"{p['rounds']} | {1e3 * p['step_seconds']:.3f} | {(tokens or batch) / p['step_seconds']:,.0f} | {p['ratio']:.2f} | "
                         f"{to_range(p)} | {100 * p['share_of_peak']:.0f} % |")
    lines += ["", "The peak is what Paceline's probe reaches beside each run, with products of that precision on these threads:", ""]
    for key in sorted({(c["cell"][1], c["cell"][3]) for c in cells}):
        probes = [probe for c in cells if (c["cell"][1], c["cell"][3]) == key for probe in c["probes"]]
        flops, copied = (statistics.median(p[name] for p in probes) / 1e9 for name in ("flops_per_second", "bytes_per_second"))
        lines.append(f"- {key[0]}, {key[1]} thread{'s' if key[1] > 1 else ''}: {flops:.0f} GFLOP/s; memory is copied at {copied:.1f} GB/s")
    work = ("A token's operations are 6 a parameter and 12 x layers x context x width of attention, of which a causal one computes half." if tokens
            else "A step's operations are those of direct convolutions. Winograd's convolutions save some, so a share can pass 100 %.")
    loss = "the loss does not rise by a tenth" if "rises" in STUDIES[study] else "the loss falls"
    lines += ["", work, "",
              "Checked in every run: parameters (" + ", ".join(sorted({f"{c['cell'][0]} {c['parameter_count']:,}" for c in cells})) +
              f"), global batch and precision are equal, and {loss}. All update by Adam. Data is in memory.",
              f"A peer that took more than {within:g} times as long as the fastest in the first round is in no other.",
              f"Others kept the CPUs busy in {busy} of {runs} runs of Paceline.", "",
              f"Machine: {machine()}. Python {platform.python_version()}.", ""]
    lines += [f"- {name} {version}" for name, version in sorted(versions.items())]
    return "\n".join(lines + ["", f"Repeat: `{command}`"]) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--paceline", default="build/release/bin/paceline")
    p.add_argument("--only", choices=list(STUDIES), help="only this study")
    p.add_argument("--rounds", type=int, help="default: 5 of mnist and gpt2, 3 of resnet50")
    p.add_argument("--steps", type=int, help="of a run; default: 300 of mnist, 3 of others")
    p.add_argument("--cells", help="only these: WORKLOAD:BATCH:THREADS,... (mnist-cnn:64:2)")
    p.add_argument("--within", type=float, default=2, help="leave slower peers out after the first round")
    p.add_argument("--out", default="results/comparisons", help="folder of the results")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for study in [a.only] if a.only else STUDIES:
        for cells, versions in measure(a, study):
            text = markdown(study, cells, versions, a.within, f"python3 tests/peers/compare.py {' '.join(sys.argv[1:])}".strip())
            with open(os.path.join(a.out, study + "-peers.json"), "w") as file:
                json.dump({"machine": machine(), "versions": versions,
                           "cells": [{**c, "summary": summarize(c["pairs"])} for c in cells]}, file, indent=1)
            with open(os.path.join(a.out, study + "-peers.md"), "w") as file:
                file.write(text)
        print(text)


if __name__ == "__main__":
    main()
