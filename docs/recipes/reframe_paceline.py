# A ReFrame check (4.x) of one workload over numbers of replicas: ReFrame starts the ranks, checks that the
# run completed, and keeps throughput, step time and exposed communication. Copy it beside your checks, and
# give them references for your systems.
#   reframe -c reframe_paceline.py -r -S workload=resnet50-cassava -S device=cuda
import json

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, run_before, sanity_function, variable


@rfm.simple_test
class PacelineScaling(rfm.RunOnlyRegressionTest):
    replicas = parameter([1, 2])
    workload = variable(str, value="mnist-mlp")
    device = variable(str, value="cpu")
    backend = variable(str, value="mpi")
    steps = variable(int, value=200)
    cpus_per_replica = variable(int, value=1)
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "paceline"

    @run_after("init")
    def describe(self):
        self.descr = f"{self.workload} on {self.replicas} replicas by {self.backend}"

    @run_before("run")
    def place(self):
        self.num_tasks = self.replicas
        self.num_cpus_per_task = self.cpus_per_replica
        if self.device != "cpu":  # as many on a node as its partition's "devices" say; without them, all on one
            there = [each.num_devices for each in self.current_partition.devices if each.type == "gpu"]
            self.num_gpus_per_node = self.num_tasks_per_node = min([self.replicas, *there])
        self.executable_opts = [
            "train", self.workload, f"--gpus={self.replicas}", f"--cpus-per-replica={self.cpus_per_replica}",
            f"--device={self.device}", f"--backend={self.backend}", "--input=synthetic", f"--steps={self.steps}",
            "--evaluate=none", "--quiet", "--record=record.json",
        ]
        # Only Slurm's launcher is asked for PMIx; "local" starts one process, which starts its ranks itself.
        if self.current_partition.launcher_type.registered_name.startswith("srun"):
            self.job.launcher.options += ["--mpi=pmix"]

    @sanity_function
    def completed(self):
        return sn.assert_eq(self.record()["status"], "completed")

    @sn.deferrable
    def record(self):
        with open(f"{self.stagedir}/record.json") as file:
            return json.load(file)

    @performance_function("samples/s")
    def throughput(self):
        return self.record()["throughput"]["samples_per_second"]

    @performance_function("ms")
    def step(self):
        return self.record()["timing"]["step_seconds"][0]["p50"] * 1000

    @performance_function("%")
    def exposed_communication(self):
        phases = self.record()["phases"]
        waited, all_steps = (sum(rank[name] for rank in phases) for name in ("communication", "step"))
        return 100 * waited / all_steps
