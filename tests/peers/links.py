#!/usr/bin/env python3
"""All-reduce between nodes whose links are limited: share of the bandwidth bound.

Makes network namespaces on this machine, each a node with one link of --rate behind a switch, runs
`paceline bench allreduce` between them in interleaved rounds (mpi and mpi-ring through mpirun, ring and
gloo started like under srun), and writes OUT.md and OUT.json. The bound is 2 (n-1)/n x bytes / rate, the rate being that of Ethernet
frames, so 5 % of it are headers. Needs root, iproute2 and Open MPI. Nothing leaves the machine.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

SWITCH = "pacelink"


def sh(command):
    subprocess.run(command, shell=True, check=True)


def down(nodes):
    for name in [SWITCH] + [f"{SWITCH}{i}" for i in range(1, nodes + 1)]:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def up(nodes, rate):
    down(nodes)
    sh(f"ip netns add {SWITCH}")
    sh(f"ip -n {SWITCH} link add plswitch type bridge")
    sh(f"ip -n {SWITCH} link set plswitch up")
    for i in range(1, nodes + 1):
        name = f"{SWITCH}{i}"
        sh(f"ip netns add {name}; ip -n {name} link set lo up")
        sh(f"ip -n {name} link add eth0 type veth peer name port{i} netns {SWITCH}")
        sh(f"ip -n {SWITCH} link set port{i} master plswitch; ip -n {SWITCH} link set port{i} up")
        sh(f"ip -n {name} addr add 10.99.0.{i}/24 dev eth0; ip -n {name} link set eth0 up")
        sh(f"ip netns exec {name} tc qdisc add dev eth0 root tbf rate {rate}mbit burst 64kb latency 50ms")


def on_node(i, command):
    return ["ip", "netns", "exec", f"{SWITCH}{i}", "unshare", "-u", "sh", "-c",
            'hostname "$0"; exec "$@"', f"{SWITCH}{i}", *command]


def bench_command(args, nodes, backend):
    return [args.paceline, "bench", "allreduce", "--gpus", str(nodes), "--nodes", str(nodes),
            "--backends", backend, "--cpus-per-task", "1", "--sizes", args.sizes, "--rounds", "1",
            "--iterations", "2", "--no-baselines", "--quiet", "--json"]


def run_by_mpirun(args, nodes, folder, backend):
    agent, hosts = os.path.join(folder, "agent"), os.path.join(folder, "hosts")
    with open(agent, "w") as file:
        file.write('#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done; h=$1; shift\n'
                   'exec ip netns exec "$h" unshare -u sh -c \'hostname "$0"; exec sh -c "$1"\' "$h" "$*"\n')
    os.chmod(agent, 0o755)
    with open(hosts, "w") as file:
        file.writelines(f"{SWITCH}{i} slots=1\n" for i in range(1, nodes + 1))
    command = ["mpirun", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent, "--mca", "btl",
               "tcp,self", "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include",
               "eth0", "--hostfile", hosts, "-np", str(nodes)] + bench_command(args, nodes, backend)
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.run(on_node(1, command), env=environment, stdout=subprocess.PIPE, check=True)


def run_directly(args, nodes, folder, backend):
    environment = dict(os.environ, PACELINE_STORE="10.99.0.1", PACELINE_TOKEN=os.urandom(16).hex(),
                       WORLD_SIZE=str(nodes), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
    command = bench_command(args, nodes, backend)
    others = [subprocess.Popen(on_node(i, command), env=dict(environment, RANK=str(i - 1)))
              for i in range(2, nodes + 1)]
    first = subprocess.run(on_node(1, command), env=dict(environment, RANK="0"),
                           stdout=subprocess.PIPE, check=True)
    for other in others:
        if other.wait() != 0:
            sys.exit("a rank failed")
    return first


BACKENDS = {"ring": run_directly, "gloo": run_directly, "mpi-ring": run_by_mpirun, "mpi": run_by_mpirun}


def measure(args, nodes, folder):
    """A row for each backend and size: the median of the rounds."""
    rounds = {name: [] for name in BACKENDS}
    for number in range(args.rounds):
        for name, run in BACKENDS.items():
            rounds[name].append(json.loads(run(args, nodes, folder, name).stdout)["collective"]["rows"])
            print(f"{nodes} nodes, round {number + 1}, {name}: done", file=sys.stderr)
    for name, records in rounds.items():
        for same_size in zip(*records):
            size = same_size[0]["bytes"]
            bound = 2 * (nodes - 1) / nodes * size * 8 / (args.rate * 1e6)
            seconds = statistics.median(row["seconds"] for row in same_size)
            yield {"nodes": nodes, "backend": name, "bytes": size, "bound_seconds": bound,
                   "seconds": seconds, "share_of_bound": bound / seconds,
                   "wrong": sum(row["wrong"] for row in same_size)}


def write(args, rows):
    with open(args.out + ".json", "w") as file:
        json.dump({"rate_mbit": args.rate, "rounds": args.rounds, "rows": rows}, file, indent=1)
    with open(args.out + ".md", "w") as file:
        file.write(f"""# All-reduce between nodes: share of the bandwidth bound

Nodes are network namespaces of one machine, each with a link limited to {args.rate} Mbit/s; one rank a
node, fp32, in place. Bound: 2 (n-1)/n x bytes / rate; the rate counts Ethernet frames, so headers
alone keep every share below 0.95. Medians of {args.rounds} interleaved rounds.

| nodes | backend | MB | bound s | seconds | share of bound |
| ---: | --- | ---: | ---: | ---: | ---: |
""")
        for r in rows:
            file.write(f"| {r['nodes']} | {r['backend']} | {r['bytes'] / 2**20:g} | "
                       f"{r['bound_seconds']:.3f} | {r['seconds']:.3f} | {r['share_of_bound']:.2f} |\n")
        file.write("\nRepeat it, as root: `python3 tests/peers/links.py --paceline "
                   "build/release/bin/paceline --out results/comparisons/links`\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paceline", required=True)
    parser.add_argument("--out", required=True, help="path without .md and .json")
    parser.add_argument("--nodes", default="2,4")
    parser.add_argument("--rate", type=int, default=100, help="Mbit/s")
    parser.add_argument("--sizes", default="1M,4M,16M")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.paceline = os.path.abspath(args.paceline)
    rows = []
    for nodes in map(int, args.nodes.split(",")):
        folder = tempfile.mkdtemp()
        try:
            up(nodes, args.rate)
            rows += measure(args, nodes, folder)
        finally:
            down(nodes)
            shutil.rmtree(folder)
    write(args, rows)


main()
