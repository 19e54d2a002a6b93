#!/usr/bin/env python3
"""Real runs against which `paceline predict` is checked: up to ten nodes on one machine.

Makes network namespaces, each a node with one link of limited rate behind a switch. Ranks 0 and 1
compute. The others sleep for durations that rank 1 had in a run of two (the program of
tests/integration/replayed_compute), so all of them communicate for real and two cores hold ten replicas.
There are no updates: those who sleep have no gradients, and all replicas must stay equal.

A series is a backend, a workload and a rate. Its calibration runs have 2 to 4 replicas, with
all-reduces alone beside them; its checks have 5 to 10, or 4 to 8 with something else changed: bf16
on the wire, buckets, the rate. In each round every point runs once, in an order drawn anew; a
second call goes on where the first ended. Calibration and checks are separate folders of --out.
Needs root, iproute2 and Open MPI. Nothing leaves the machine.
"""
import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import time

SWITCH = "pacereplay"
NODES = 10
REAL = 2
# Ten nodes share the cores, so messages must cost little of them. With the usual 1,500 bytes a
# packet and with ranks that poll MPI each 20 microseconds, the ranks that compute took three times as long.
MTU = 9000
TIMER_SLACK = 300000  # nanoseconds by which the kernel may prolong a sleep
# Samples of a replica so that two cores take about as long as links of these Mbit/s.
WORKLOADS = {"mnist-mlp": {"batch": 2048, "rates": (100, 200), "changes": {"wire": "bf16"}},
             "layers": {"batch": 1024, "rates": (200, 400), "changes": {"wire": "bf16", "bucket": 2}}}
BACKENDS = ("mpi-ring", "ring")
CALIBRATION = (2, 3, 4)
CHECKS = (5, 6, 8, 10)
CHANGED = (4, 8)
STEPS = 44  # the first 10 are warm-up


def sh(command):
    subprocess.run(command, shell=True, check=True)


def down():
    for name in [SWITCH] + [f"{SWITCH}{i}" for i in range(1, NODES + 1)]:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def up():
    down()
    sh(f"ip netns add {SWITCH}; ip -n {SWITCH} link add plswitch mtu {MTU} type bridge; "
       f"ip -n {SWITCH} link set plswitch up")
    for i in range(1, NODES + 1):
        name = f"{SWITCH}{i}"
        sh(f"ip netns add {name}; ip -n {name} link set lo up; "
           f"ip -n {name} link add eth0 mtu {MTU} type veth peer "
           f"name port{i} mtu {MTU} netns {SWITCH}; "
           f"ip -n {SWITCH} link set port{i} master plswitch; ip -n {SWITCH} link set port{i} up; "
           f"ip -n {name} addr add 10.98.0.{i}/24 dev eth0; ip -n {name} link set eth0 up")


def limit(rate):
    for i in range(1, NODES + 1):
        sh(f"ip netns exec {SWITCH}{i} tc qdisc replace dev eth0 root tbf rate {rate}mbit "
           "burst 64kb latency 50ms")


# Runs "$@" on node $0; sleeps there for the durations in $RECORDED unless it is one of the first.
# Nodes take turns on the cores: else the threads that wait for messages gather on one of them.
NODE = ('hostname "$0"; echo ' + str(TIMER_SLACK) + ' > /proc/$$/timerslack_ns; '
        'i=${0#' + SWITCH + '}; export PACELINE_COMPUTE_CPU=$(( (i - 1) % 2 )); '
        'if [ "$i" -gt ' + str(REAL) + ' ] && [ -n "$RECORDED" ]; '
        'then export PACELINE_RECORDED=$RECORDED PACELINE_SLEEPER=$i; fi; exec "$@"')


class Machine:
    def __init__(self, paceline, folder):
        self.paceline, self.folder = paceline, folder
        self.agent = os.path.join(folder, "agent")
        with open(self.agent, "w") as file:
            file.write("#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done; h=$1; shift\n"
                       f"exec ip netns exec \"$h\" unshare -u sh -c '{NODE}' \"$h\" sh -c \"$*\"\n")
        os.chmod(self.agent, 0o755)

    def on_node(self, i, command):
        return ["ip", "netns", "exec", f"{SWITCH}{i}", "unshare", "-u", "sh", "-c", NODE,
                f"{SWITCH}{i}", *command]

    def run(self, nodes, backend, arguments, recorded, seed):
        command = [self.paceline, *arguments, "--gpus", str(nodes), "--nodes", str(nodes),
                   "--backend", backend, "--quiet"]
        environment = dict(os.environ, RECORDED=recorded)
        if backend.startswith("mpi"):
            hosts = os.path.join(self.folder, "hosts")
            with open(hosts, "w") as file:
                file.writelines(f"{SWITCH}{i} slots=1\n" for i in range(1, nodes + 1))
            environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
            command = ["mpirun", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", self.agent,
                       "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0", "--mca",
                       "oob_tcp_if_include", "eth0", "--bind-to", "none", "-x", "RECORDED",
                       "--hostfile", hosts, "-np", str(nodes), *command]
            return subprocess.run(self.on_node(1, command), env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        environment.update(PACELINE_STORE="10.98.0.1", PACELINE_TOKEN=f"{seed:032x}",
                           WORLD_SIZE=str(nodes), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
        others = [subprocess.Popen(self.on_node(i, command), env=dict(environment, RANK=str(i - 1)),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                  for i in range(2, nodes + 1)]
        first = subprocess.run(self.on_node(1, command), env=dict(environment, RANK="0"), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        for other in others:
            other.communicate()
        return first


class Point:
    def __init__(self, backend, workload, rate, nodes, bucket=None, wire=None, bench=False):
        self.backend, self.workload, self.rate, self.nodes = backend, workload, rate, nodes
        self.bucket, self.wire, self.bench = bucket, wire, bench
        self.series = f"{backend}-{workload}-{rate}"

    def kind(self):
        if self.bench or (self.nodes in CALIBRATION and not self.bucket and not self.wire):
            return "calibration"
        return "checks"

    def name(self):
        if self.bench:
            return f"bench-{self.nodes}"
        more = (f",bucket_mb={self.bucket}" if self.bucket else "") + (
            f",wire={self.wire}" if self.wire else "")
        return f"gpus={self.nodes}{more}"

    def file(self, out, turn):
        return os.path.join(out, self.kind(), self.series, self.name(), f"{turn}.1.json")

    def stack(self):
        return self.backend + (f"+{self.wire}" if self.wire else "")

    def arguments(self, record):
        if self.bench:
            return ["bench", "allreduce", "--cpus-per-task", "1", "--sizes",
                    "64K,512K,4M", "--rounds", "3", "--iterations", "2", "--no-baselines", "--record",
                    record]
        return ["train", self.workload, "--device", "replayed_compute", "--cpus-per-task", "2",
                "--compute-threads", "1", "--comm-threads", "1", "--input", "synthetic",
                "--steps-per-epoch", str(STEPS), "--epochs", "1", "--batch-per-replica",
                str(WORKLOADS[self.workload]["batch"]), "--evaluate", "none", "--no-update", "--bucket-mb",
                str(self.bucket or 0.3), "--last-bucket-mb", "0.1", "--record", record]


def all_points():
    points = []
    for backend in BACKENDS:
        for workload, facts in WORKLOADS.items():
            for rate in facts["rates"]:
                series = (backend, workload, rate)
                points += [Point(*series, n, bench=True) for n in CALIBRATION[::2]]
                points += [Point(*series, n) for n in CALIBRATION + CHECKS]
            series = (backend, workload, facts["rates"][0])
            for name, value in facts["changes"].items():
                points += [Point(*series, n, **{name: value}) for n in CHANGED]
    return points


def count_as(repeat, record_file):
    """A run that no sweep started calls itself the first repeat."""
    with open(record_file) as file:
        record = json.load(file)
    record["repeat"] = repeat
    with open(record_file, "w") as file:
        json.dump(record, file, indent=1)


def recorded_of(record_file):
    """Durations of rank 1 in a run of two, in the form that this program reads."""
    with open(record_file) as file:
        record = json.load(file)
    ready = [row["backward_seconds"] for row in record["plan"]["gradients"]]
    lines = ["ready " + " ".join(f"{each / ready[-1]:.6f}" for each in ready)]
    samples = os.path.join(os.path.dirname(record_file), record["samples"]["file"])
    with gzip.open(samples, "rt") as file:
        for line in file:
            step = json.loads(line)
            if step.get("rank") == 1 and step["step"] >= 4:
                lines.append(f"{step['forward']} {step['backward']} {step['update']}")
    return "\n".join(lines) + "\n"


def recorded_file(out, point):
    path = os.path.join(out, f"recorded-{point.series}")
    first = Point(point.backend, point.workload, point.rate, 2).file(out, 1)
    if point.nodes > REAL and not point.bench and not os.path.exists(path):
        durations = recorded_of(first)
        with open(path, "w") as file:
            file.write(durations)
    return path if point.nodes > REAL and not point.bench else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", required=True, help="build/release/replayed_compute/paceline")
    parser.add_argument("--out", required=True, help="folder of the records")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop then; call again to go on")
    parser.add_argument("--only", default="", help="series whose names contain this")
    args = parser.parse_args()
    args.out, args.paceline = os.path.abspath(args.out), os.path.abspath(args.paceline)
    os.makedirs(args.out, exist_ok=True)
    began = time.time()
    points = [p for p in all_points() if args.only in p.series]
    machine = Machine(args.paceline, args.out)
    up()
    limited, failed = None, 0
    try:
        for turn in range(1, args.rounds + 1):
            random.Random(turn).shuffle(points)
            # The first round makes the durations of those who sleep.
            points.sort(key=lambda p: (p.rate, p.nodes > REAL or p.bench) if turn == 1 else 0)
            for number, point in enumerate(points):
                record = point.file(args.out, turn)
                if os.path.exists(record) or (point.bench and turn > 1):
                    continue
                if time.time() - began > args.minutes * 60:
                    sys.exit("out of time; call again to go on")
                if point.rate != limited:
                    limit(point.rate)
                    limited = point.rate
                os.makedirs(os.path.dirname(record), exist_ok=True)
                try:
                    recorded = recorded_file(args.out, point)
                except OSError:
                    failed += 1  # the run that it comes from failed
                    continue
                ran = machine.run(point.nodes, point.stack(), point.arguments(record), recorded,
                                  turn * 1000 + number)
                if ran.returncode == 0:
                    count_as(turn, record)
                failed += ran.returncode != 0
                print(f"{time.time() - began:6.1f} s  round {turn}  {point.series}  {point.name()}",
                      f"failed: {ran.stderr[-2000:]}" if ran.returncode != 0 else "",
                      file=sys.stderr, flush=True)
    finally:
        down()
    if failed:
        sys.exit(f"{failed} runs failed; call again to repeat them")


main()
