"""Trains nothing, as told: --wait 0.004 (of each batch), --late (rank 1), --save FILE, ..."""
import argparse
import copy
import importlib
import multiprocessing
import os
import pickle
import socket
import sys
import time

import torch
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
for name in ("wait", "late", "transfer", "save_seconds"):
    parser.add_argument("--" + name, type=float, default=0.0005 if name == "transfer" else 0)
parser.add_argument("--save", default="")
parser.add_argument("--write", default="")
parser.add_argument("--shell", default="")
parser.add_argument("--steps", type=int, default=5000)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--global-batch", type=int, default=0)
parser.add_argument("--bucket", type=float, default=25)
parser.add_argument("--epoch", type=int, default=100, help="its batches")
parser.add_argument("--between", type=float, default=0, help="epochs")
parser.add_argument("--skip", type=int, default=0, help="a scaler skips each so many-th step")
parser.add_argument("--engine", default="", help="of another framework, which builds no DDP")
for flag in ("spawn", "plain-alone", "copy", "unused", "gather", "fails-after", "waits-after", "item", "irregular", "in-place", "own-hook", "child", "call", "no-step", "sharded", "closure"):
    parser.add_argument("--" + flag, action="store_true")
options = parser.parse_args()


def child():
    torch.optim.Optimizer(1).step()


def train():
    os.makedirs("/usr", exist_ok=True)  # changes nothing
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.settings.update(wait=options.wait, transfer=options.transfer, save=options.save_seconds)
    if options.write:
        with open(options.write, "a", encoding="utf-8") as file:
            file.write("written\n")
    if options.shell:
        os.system(options.shell)
    if options.child:
        process = multiprocessing.get_context("spawn").Process(target=child)
        process.start()
        process.join()
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
    if options.own_hook:
        model.register_comm_hook(state=None, hook=lambda state, bucket: torch.distributed.all_reduce(bucket))
    if options.copy:
        pickle.dumps(copy.deepcopy(model))
    optimizer = torch.optim.Optimizer(0.1)
    if options.sharded:
        optimizer.param_groups[0]["params"][0]._is_flat_param = True
    batch = options.global_batch // world or 16
    step, samples = 0, options.epoch * batch
    while step < options.steps:
        for number, each in enumerate(torch.utils.data.DataLoader(samples, batch)):
            features = each.pop("features")
            if options.in_place:
                features.add_(1)
            def forward_and_backward():
                model(features)
                if options.late and rank == 1:
                    time.sleep(options.late)
                model.backward()
            if not options.closure:
                forward_and_backward()
            if options.irregular and number % 3 == 0:
                model(features)
            if options.item:
                features.item()
            if options.call:
                torch.distributed.all_reduce(features)
                print("loss", flush=True)
            if options.gather:
                gathered = [torch.Tensor([1]) for _ in range(world)]
                torch.distributed.all_gather(gathered, features, None, True).wait()
            if (number + 1) % options.accumulate == 0:
                if not options.no_step and not (options.skip and step % options.skip == 1):
                    optimizer.step(forward_and_backward if options.closure else None)
                step += 1
                if options.save and rank == 0:
                    torch.save(obj="weights", f=options.save)
            if step >= options.steps:
                break
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
