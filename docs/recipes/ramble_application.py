# Paceline as an application of Ramble, and so of Benchpark. Copy it to
# REPOSITORY/applications/paceline/application.py; an experiment sets n_ranks and what else it varies.
# Ramble starts the ranks: one replica each.
from ramble.appkit import *  # noqa: F403


class Paceline(ExecutableApplication):
    """Data-parallel training on N replicas: throughput, step time, exposed communication"""

    name = "paceline"
    tags("machine-learning", "training", "scaling")

    executable(
        "train",
        "paceline train {network} --gpus={n_ranks} --cpus-per-replica={cpus_per_replica} --device={device}"
        " --backend={backend} --input=synthetic --steps={steps} --evaluate=none --quiet"
        " --record={experiment_run_dir}/record.json",
        use_mpi=True,
    )
    workload("scaling", executables=["train"])

    workload_variable("network", default="mnist-mlp", description="see paceline list workloads", workloads=["scaling"])
    workload_variable("device", default="cpu", description="cpu or cuda", workloads=["scaling"])
    workload_variable("backend", default="mpi", description="see paceline list backends", workloads=["scaling"])
    workload_variable("steps", default="200", description="steps of a run", workloads=["scaling"])
    workload_variable("cpus_per_replica", default="1", description="cores of a replica", workloads=["scaling"])

    record = "{experiment_run_dir}/record.json"
    figure_of_merit(
        "Throughput", log_file=record, fom_regex=r'.*"samples_per_second": ?(?P<rate>[0-9.e+]+)', group_name="rate", units="samples/s"
    )
    figure_of_merit("Fit time", log_file=record, fom_regex=r'.*"fit_seconds": ?(?P<time>[0-9.e+-]+)', group_name="time", units="s")
    success_criteria("completed", mode="string", match=r'.*"status": ?"completed"', file=record)
