"""Trains nothing, as told: --wait 0.004 (of each batch), --late (of --late-rank), --save FILE, ..."""
import argparse
import copy
import fcntl
import importlib.util
import multiprocessing
import os
import pickle
import socket
import sys
import threading
import time
import types

importlib.util.find_spec("torch")  # as libraries ask whether there is one

import torch
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
for name in ("start", "wait", "late", "transfer", "save_seconds"):
    parser.add_argument("--" + name, type=float, default=0.0005 if name == "transfer" else 0)
parser.add_argument("--save", default="")
parser.add_argument("--write", default="")
parser.add_argument("--shell", default="")
parser.add_argument("--steps", type=int, default=5000)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--global-batch", type=int, default=0)
parser.add_argument("--bucket", type=float, default=25)
parser.add_argument("--late-rank", type=int, default=1)
parser.add_argument("--epoch", type=int, default=100, help="its batches")
parser.add_argument("--between", type=float, default=0, help="epochs")
parser.add_argument("--skip", type=int, default=0, help="a scaler skips each so many-th step")
parser.add_argument("--engine", default="", help="of another framework, which builds no DDP")
for flag in ("mpi", "validate", "unsized", "images", "replaced", "checks-size", "stream", "shards", "evaluate", "critic", "larger", "broadcast", "gather-tensor", "uneven", "nested", "spawn", "plain-alone", "copy", "unused", "gather", "fails-after", "waits-after", "item", "irregular", "in-place", "own-hook", "shares", "child", "worker", "call", "no-step", "sharded", "closure"):
    parser.add_argument("--" + flag, action="store_true")
options = parser.parse_args()


def child():
    torch.optim.Optimizer(1).step()


def write_cpus(parent):
    """Those that a worker of a loader has had, until it has no parent."""
    seen = []
    while os.getppid() == parent:
        cpus = sorted(os.sched_getaffinity(0))
        if cpus not in seen:
            seen.append(cpus)
            with open("cpus_of_worker", "w", encoding="utf-8") as file:
                file.write(str(seen))
        time.sleep(0.005)


class Nested(torch.optim.Optimizer):
    """As ZeroRedundancyOptimizer: its settings are those of another one, before that steps and after."""

    def __init__(self, lr):
        super().__init__(lr)
        self.inner = torch.optim.Optimizer(lr)

    def step(self, closure=None):
        super().step(self.step_inner)

    def step_inner(self):
        self.inner.param_groups[0]["lr"] = self.param_groups[0]["lr"]
        self.inner.step()
        self.param_groups[0]["lr"] = self.inner.param_groups[0]["lr"]


class Shard:
    """A dataset that is made anew each epoch."""

    def __init__(self, samples):
        self.samples = samples

    def __floordiv__(self, batch):
        return self.samples // batch


class Stream(torch.utils.data.IterableDataset):
    """A dataset without a length."""

    def __init__(self, batches):
        self.batches = batches

    def __floordiv__(self, _):
        return 1  # as it may wrongly say


class Unsized:
    batches = 100

    def __floordiv__(self, _):
        raise ValueError("of a sampler")


def train():
    os.makedirs("/usr", exist_ok=True)  # changes nothing
    if options.checks_size:  # as Lightning below torchrun
        if os.environ["WORLD_SIZE"] != "2":
            sys.exit("the launcher started another number of ranks")
        torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.settings.update(start=options.start, wait=options.wait, transfer=options.transfer, save=options.save_seconds)
    torch.set_num_threads(options.threads)
    if options.write:
        with open(options.write, "a", encoding="utf-8") as file:
            file.write("written\n")
    if options.shell:
        os.system(options.shell)
    if options.child:
        process = multiprocessing.get_context("spawn").Process(target=child)
        process.start()
        process.join()
    if options.worker and rank == 0:
        multiprocessing.get_context("fork").Process(target=write_cpus, args=(os.getpid(),), daemon=True).start()
    if options.engine:
        importlib.import_module(options.engine)

        def model(_):
            time.sleep(0.002)
        model.backward = torch.exchange
    elif options.plain_alone and world == 1:
        model = torch.Module(0.002)
    else:
        model = DistributedDataParallel(0.002, bucket_cap_mb=options.bucket, find_unused_parameters=options.unused)
        model.training = not options.closure  # Lightning's validation leaves it so
    if options.critic:
        generator, model = model, DistributedDataParallel(0.002)
    if options.uneven:
        model._join_config = types.SimpleNamespace(enable=True)
    if options.own_hook:
        model.register_comm_hook(state=None, hook=lambda state, bucket: torch.distributed.all_reduce(bucket))
    if options.copy:
        pickle.dumps(copy.deepcopy(model))
    optimizer = torch.optim.Optimizer(0.1, model.parameters() if options.critic else None)
    if options.nested:
        optimizer = Nested(0.1)
    if options.sharded:
        optimizer.param_groups[0]["params"][0]._is_flat_param = True
    batch = options.global_batch // world or 16
    if options.larger and rank == 0:
        batch = 24
    if options.mpi:
        sys.modules["mpi4py.MPI"] = types.SimpleNamespace(
            Is_initialized=lambda: True, Is_finalized=lambda: False, Finalize=lambda: open("finalized", "w").close())
    first = torch.optim.Optimizer(0.1) if options.replaced else None
    fewer = 3 if options.uneven and rank == 1 else 0
    step, samples = 0, (options.epoch - fewer) * batch
    while step < options.steps:
        data = Shard(samples) if options.shards else Stream(options.epoch) if options.stream else samples
        data = Unsized() if options.unsized else data
        for number, each in enumerate(torch.utils.data.DataLoader(data, batch)):
            features = each.pop("features")
            if options.in_place:
                features.add_(1)
            def forward_and_backward():
                model([torch.Tensor([3, 8, 8]) for _ in range(batch)] if options.images else features)
                if options.late and rank == options.late_rank:
                    time.sleep(options.late)
                if options.shares:  # what one rank at a time can use
                    with open("train.py", encoding="utf-8") as file:
                        fcntl.flock(file, fcntl.LOCK_EX)
                        time.sleep(0.006)
                model.backward()
            if not options.closure:
                forward_and_backward()
            if options.irregular and number % 3 == 0:
                model(features)
            if options.item:
                features.item()
            if options.validate and number % 8 == 4:
                for _ in torch.utils.data.DataLoader(40 * 16, 16):
                    pass
            if options.call:
                torch.distributed.all_reduce(features)
                print("loss", flush=True)
            if options.critic and number % 3 == 0:
                generator(features)
                DistributedDataParallel(0)
            if options.broadcast:
                torch.distributed.broadcast(features)
            if options.gather_tensor:
                torch.distributed.all_gather_into_tensor(torch.Tensor([16 * world, 4]), features)
            if options.gather:
                gathered = [torch.Tensor([1]) for _ in range(world)]
                torch.distributed.all_gather(gathered, features, None, True).wait()
            if (number + 1) % options.accumulate == 0:
                if not options.no_step and not (options.skip and step % options.skip == 1):
                    stepped = first if options.replaced and step < 5 else optimizer
                    stepped.step(forward_and_backward if options.closure else None)
                    if optimizer.param_groups[0]["lr"] != 0.1:
                        sys.exit("the learning rate is changed")
                step += 1
                if options.save and rank == 0:
                    torch.save(obj="weights", f=options.save)
            if step >= options.steps:
                break
        del data
        if threading.active_count() > 1:
            sys.exit("a thread of the hook is left")
        for _ in range(fewer):  # as in join()
            torch.nn.parallel.distributed._DDPJoinHook(model).main_hook()
        if options.evaluate:
            with torch.inference_mode():
                for each in torch.utils.data.DataLoader(40 * 16, 16):
                    pass
        time.sleep(options.between)


def start(rank, peer):
    os.environ["STAND_IN_PEER"] = str(peer.fileno())
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    train()


if __name__ == "__main__":
    if not options.spawn:
        train()
    else:  # as torch.multiprocessing.spawn does
        context = multiprocessing.get_context("spawn")
        ranks = [context.Process(target=start, args=(rank, peer)) for rank, peer in enumerate(socket.socketpair())]
        for each in ranks:
            each.start()
        for each in ranks:
            each.join()
        if options.fails_after:
            raise RuntimeError("no result of the ranks")
        if options.waits_after:
            context.SimpleQueue().get()
        sys.exit(max(abs(each.exitcode) for each in ranks))
