"""Measures a training program from inside, unedited, for `paceline why`.

Loaded by sitecustomize.py when `torch` is. The variable PACELINE_WHY is a JSON object:
  out       folder of what is written: rank<R>.json, then run.json of all ranks by rank 0
  warm      steps before the measured ones
  steps     the step at which all ranks end
  seconds   above 0: they end sooner, 20 steps after these of measured steps
  take      costs to take away: "data" "sums" "own" "saves" "syncs" "threads"; with "data" "output": the loader works,
            and its batches are dropped
  turns     in which N replicas are several programs after their warm-up: {"programs": [["as-it-is", []],
            ["no-sums", ["sums"]], ["alone", ["sums", "others"]]], "turn": steps of one, "settle": of these not
            measured, "rounds": of turns, "alone_epochs": seconds of a step that epochs cost one alone}; without
            "others" rank 0 is alone, before they make their steps
  profile   steps after the last one that PyTorch's profiler watches, into trace_rank<R>.json
  replicas  "1": rank 0 alone, all others end at once, or where they would join the process group
  threads   CPUs of a rank, to which it is bound where that is taken
  cpus      the machine's CPUs, for threads
  bucket_mb, workers, batch   instead of the program's own; 0: as it is
  lengths   of loaders that have none, as the first run's run.json has them
  keeps_sizes   one alone keeps the launcher's number of ranks, which some programs check
A step is a call of the first optimizer that steps, or of one that steps in its place later. It is checked against the
forward passes of DDP.
"""
import atexit
import collections.abc
import contextlib
import copy
import functools
import glob
import inspect
import json
import multiprocessing.util
import os
import pickle
import random
import sys
import threading
import time
import types
import weakref

now = time.perf_counter
RECORDED = 32
REPLACED, FEWEST = 100, 20  # steps of other optimizers after which a first one counts no more; steps that are enough
# Variables of rank and size, by launcher.
RANKS = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
         ("SLURM_PROCID", "SLURM_NTASKS"))
LOCAL = (("LOCAL_RANK", "LOCAL_WORLD_SIZE"), ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
         ("SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"))
SLURMS_OWN = 0xfffffff0  # steps of Slurm that are no tasks of srun, as a batch script
# What waits for a GPU to read a value of it.
READS = ("item", "tolist", "__float__", "__int__", "__bool__")
TAKEN_OWN = ("all_reduce", "reduce", "barrier", "all_gather", "all_gather_into_tensor", "all_gather_object", "gather")
OWN = TAKEN_OWN + ("broadcast", "reduce_scatter", "broadcast_object_list", "scatter", "all_to_all", "gather_object",
                   "scatter_object_list", "reduce_scatter_tensor", "all_to_all_single", "send", "recv",
                   "batch_isend_irecv", "monitored_barrier")
# Callers in torch whose collectives are the program's.
PROGRAMS = ("torch.distributed.nn", "torch.distributed.algorithms.model_averaging", "torch.distributed.optim")
OTHERS = ("deepspeed", "apex", "horovod.torch", "colossalai", "megatron")


def of_launcher(pairs, which, otherwise):
    if is_child():
        pairs = pairs[:1]  # others are those of its parent
    for pair in pairs:
        step = os.environ.get("SLURM_STEP_ID", "")
        if pair[0].startswith("SLURM") and not (step.isdigit() and int(step) < SLURMS_OWN):
            continue
        if os.environ.get(pair[which], "").isdigit():
            return int(os.environ[pair[which]])
    return otherwise


def is_child():
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def tensors(batch, torch, found):
    if isinstance(batch, torch.Tensor):
        found.append(batch)
    elif isinstance(batch, (collections.abc.Mapping, list, tuple)):
        for each in batch.values() if isinstance(batch, collections.abc.Mapping) else batch:
            tensors(each, torch, found)
    return found


def samples_of(given, torch):
    """The first dimension of the first tensor; of a list of images of any size their number."""
    found = tensors(given, torch, [])
    images = given[0] if given and isinstance(given[0], (list, tuple)) else ()
    if images and all(isinstance(each, torch.Tensor) and each.dim() == 3 and each.shape[0] < 5 for each in images):
        return len(images)
    return int(found[0].shape[0]) if found and found[0].dim() > 0 else 0


def copied(batch, torch, with_tensors=True):
    """The same structure, which a program may change; with tensors of its own, too, pinned where they were."""
    def inside(each):
        return copied(each, torch, with_tensors)
    if isinstance(batch, torch.Tensor):
        if not with_tensors:
            return batch
        with torch.inference_mode(False):  # tensors of that mode have no version
            own = batch.detach().clone()
        return own.pin_memory() if batch.device.type == "cpu" and batch.is_pinned() else own
    if isinstance(batch, (dict, collections.UserDict)):
        own = copy.copy(batch)
        own.update((key, inside(each)) for key, each in batch.items())
        return own
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(inside(each) for each in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(inside(each) for each in batch)
    return batch


def middle(values):
    return sorted(values)[len(values) // 2]


def set_rate(group, rate):
    if hasattr(group.get("lr"), "fill_"):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate


# What an asynchronous collective that was taken away returns.
DONE = types.SimpleNamespace(**dict.fromkeys(("wait", "is_completed", "is_success"), lambda *_: True))


def skipped_call(name, order, given, named):
    """Of a collective: each rank takes its own for all ranks'."""
    named = dict(zip(order, given), **named)
    if name == "all_gather_object":
        named["object_list"][:] = [pickle.loads(pickle.dumps(named["obj"])) for _ in named["object_list"]]
    own = named.get("input_tensor", named.get("tensor"))
    places = named.get("tensor_list" if name == "all_gather" else "gather_list") or []
    if name == "all_gather_into_tensor":
        places = named["output_tensor"].detach().view(-1, own.numel()).unbind()
    for each in places:  # of which own is a part where parameters are sharded: those stay
        if each.untyped_storage().data_ptr() != own.untyped_storage().data_ptr():
            each.detach().copy_(own.detach().reshape(each.shape))
    return DONE if named.get("async_op") else None


class Dropped:
    """Takes a batch of a loader for each that a step is given, and drops it."""

    def __init__(self, hook, batches):
        self.hook, self.batches, self.wanted, self.is_closed = hook, batches, threading.Semaphore(0), False
        self.thread = threading.Thread(target=self.take, daemon=True)
        self.thread.start()

    def take(self):
        while self.wanted.acquire() and not self.is_closed and next(self.batches, None) is not None:
            self.hook.dropped += 1

    def close(self):
        """Workers that persist have another iterator in the next epoch."""
        self.is_closed = True
        self.wanted.release()
        self.thread.join()


class Batches:
    """An iterator of a loader: times it, records its first batches, and repeats them."""

    def __init__(self, hook, loader, original):
        # A program may build its loader anew each epoch.
        length = self.length(loader)
        self.source = (hook.numbered(getattr(loader, "dataset", loader)), getattr(loader, "batch_size", None),
                       getattr(loader, "drop_last", None), length)
        self.hook, self.kept = hook, hook.kept.setdefault(self.source, [])
        self.given, hook.started = 0, True
        self.left = hook.lengths.get(self.source) if length is None else length
        self.real = self.dropped = None
        self.repeats = hook.may_take("data") and self.source in hook.whole
        if not self.repeats or hook.takes("output") or hook.takes_turns:
            start = now()
            self.real = original(loader)
            hook.waited += now() - start
        hook.workers = max(hook.workers, getattr(loader, "num_workers", 0))
        self.next_kept, self.handed_out = 0, []

    @staticmethod
    def length(loader):
        """Of torch's own iterator, which that of a class made of it may go on for ever with."""
        data = HOOK.torch.utils.data
        if isinstance(loader.dataset, data.IterableDataset):
            return None  # what it says of itself may be wrong, or take a pass
        try:
            return data.DataLoader.__len__(loader)
        except Exception:  # pylint: disable=broad-except
            return None  # of the program's sampler

    def __iter__(self):
        return self

    def __len__(self):
        return self.left or 0

    def __getattr__(self, name):
        return getattr(self.real, name)

    def __next__(self):
        hook, start = self.hook, now()
        repeats = self.repeats and hook.takes("data") and not (hook.takes_turns and self.left is None)
        if (repeats or hook.takes_turns) and self.left is not None and self.left <= 0:
            if self.dropped is not None:
                self.dropped.close()
            self.real = None  # its workers end
            hook.waited += now() - start
            raise StopIteration
        if repeats:
            batch = self.repeat()
        else:
            try:
                batch = next(self.real)
            except StopIteration:
                hook.lengths[self.source] = self.given
                if self.kept:
                    hook.whole.add(self.source)
                raise
            hook.batches += 1
            if hook.may_take("data") and not self.repeats:
                self.kept.append(copied(batch, hook.torch))
                if len(self.kept) >= RECORDED:
                    self.repeats = True
                    hook.whole.add(self.source)
        self.given += 1
        if self.left is not None:
            self.left -= 1
        end = now()
        hook.waited += end - start
        if hook.measures:
            hook.elements += sum(each.numel() for each in tensors(batch, hook.torch, []))
            hook.turn.overhead += now() - end
        return batch

    def repeat(self):
        if self.hook.takes("output"):
            if self.dropped is None:
                self.dropped = Dropped(self.hook, self.real)
            self.dropped.wanted.release()
        if any(each._version != version for each, version in self.handed_out):
            self.hook.facts["changes_batches"] = True
        batch = copied(self.kept[self.next_kept % len(self.kept)], self.hook.torch, self.hook.facts["changes_batches"])
        self.next_kept += 1
        self.handed_out = [(each, each._version) for each in tensors(batch, self.hook.torch, [])]
        self.hook.turn.repeated += 1
        return batch


def end_process():
    """Ends the process as one that succeeds."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.Finalize()  # else its launcher stops the other ranks
    os._exit(0)


def end_process_after(file):
    while not os.path.exists(file):
        time.sleep(0.5)
    time.sleep(2)
    end_process()


HOOK = None


def current_hook():
    return HOOK


def sum_in_turns(ddp, bucket):
    """A communication hook of DDP that leaves each rank its own gradients where sums are taken away."""
    if HOOK.takes("sums"):
        future = HOOK.torch.futures.Future()
        future.set_result(bucket.buffer())
        return future
    if hasattr(ddp, "paceline_hook"):
        return ddp.paceline_hook(bucket)
    group = ddp.process_group
    work = HOOK.all_reduce(bucket.buffer().div_(group.size()), group=group, async_op=True)
    return work.get_future().then(lambda sums: sums.value()[0])


class Turn:
    """Steps with some costs taken away, and what they took."""

    def __init__(self, program, take):
        self.program, self.take = program, take
        self.wait, self.own, self.saves, self.syncs = 0.0, [0, 0.0], [0, 0.0], [0, 0.0]
        self.overhead, self.elements, self.samples, self.repeated, self.is_shared = 0.0, 0, 0, 0, False
        self.times, self.forwards, self.starts = [], [], []  # of steps; starts: those that came after a loader's
        self.parts = []  # first steps of its turns

    def ratio(self):
        """Forward passes of a step, if most steps have as many; else 0."""
        most = max(set(self.forwards), key=self.forwards.count) if self.forwards else 0
        return most if self.forwards and self.forwards.count(most) >= 0.75 * len(self.forwards) else 0

    def result(self, is_counted):
        return dict(
            program=self.program, take=self.take, steps=len(self.times), times=self.times, starts=self.starts,
            parts=self.parts,
            ratio=self.ratio() if is_counted else 1, samples=self.samples if is_counted else 0,
            elements=self.elements, wait=self.wait, own_calls=self.own[0], own_seconds=self.own[1], saves=self.saves[0],
            save_seconds=self.saves[1], overhead=self.overhead, sync_seconds=self.syncs[1], repeated=self.repeated,
            # What was not recorded yet was not taken away, nor others for which rank 0 waited.
            is_whole=not ("data" in self.take and self.repeated == 0 or "others" in self.take and self.is_shared))


class Hook:
    def __reduce__(self):
        return current_hook, ()  # of copies and files of the DDP that it watches

    def __init__(self, torch, settings, check):
        self.torch, self.settings, self.check = torch, settings, check
        self.takes_turns = settings.get("turns") if settings["replicas"] != "1" else None
        if self.takes_turns:
            steps = self.takes_turns["turn"] * len(self.takes_turns["programs"])
            settings["steps"] = settings["warm"] + self.takes_turns["rounds"] * steps
        self.rank, self.world = of_launcher(RANKS, 0, 0), of_launcher(RANKS, 1, 1)
        self.optimizer = self.counted = None  # the module whose forward passes are counted
        self.ddp = []
        self.forwards = self.largest = self.batches = self.dropped = 0
        self.kept, self.whole, self.numbers = {}, set(), []
        self.lengths = {tuple(source): length for source, length in settings.get("lengths", ())}
        self.workers, self.staying, self.alone, self.built = 0, set(), 0, now()  # alone: turns of rank 0
        self.read, self.reads = {}, False  # the last values, by where they were read
        self.synchronize, self.all_reduce = torch.cuda.synchronize, getattr(torch.distributed, "all_reduce", None)
        self.rates, self.started = [], False  # a loader, since the last step
        self.begin()
        self.own_cpus, self.own_threads = {}, 0  # by task, before it was bound
        self.in_ddp, self.has_written, self.profiler, self.frozen = False, False, None, None  # in its own sums
        self.facts = {"comm_hook": "", "changes_batches": False, "sync_batch_norm": False, "finds_unused": False}

    def begin(self):
        self.is_warm, self.measures, self.steps, self.steps_of_others = False, False, 0, 0
        programs = self.takes_turns["programs"] if self.takes_turns else [["", self.settings["take"]]]
        self.turns = [Turn(*each) for each in programs]
        self.turn, self.order = self.turns[0], []
        self.at = self.warm_at = self.forwards_before = 0  # the last step
        self.samples = self.elements = self.waited = 0  # and since
        self.begun = []  # in turns: steps in which a loader started

    def trains(self):
        """Or is it a worker of a loader or of a compiler?"""
        return bool(self.ddp) or not is_child() or self.torch.distributed.is_initialized()

    def count(self, name, start):
        if self.measures:
            total = getattr(self.turn, name)
            total[0] += 1
            total[1] += now() - start

    def takes(self, what):
        return what in self.turn.take

    def may_take(self, what):
        return any(what in turn.take for turn in self.turns)

    def numbered(self, thing):
        """Of a dataset; one that is made anew each epoch has the number of the one before."""
        try:
            known = weakref.ref(thing)
        except TypeError:
            def known():
                return thing
        for number, (kind, other) in enumerate(self.numbers):
            if other() is thing or (other() is None and kind is type(thing)):
                self.numbers[number] = kind, known
                return number
        self.numbers.append((type(thing), known))
        return len(self.numbers) - 1

    def is_cuda(self):
        return self.torch.cuda.is_available() and self.torch.cuda.is_initialized()

    # What the program builds.

    def ddp_built(self, ddp):
        self.ddp.append(ddp)
        if len(self.ddp) == 1:
            self.counted = ddp
        ddp.register_forward_pre_hook(self.forward, with_kwargs=True)
        if any(type(each).__name__ == "SyncBatchNorm" for each in ddp.modules()):
            self.facts["sync_batch_norm"] = True
        unused = getattr(ddp, "find_unused_parameters", False) and not getattr(ddp, "static_graph", False)
        self.facts["finds_unused"] = self.facts["finds_unused"] or unused
        if self.may_take("sums"):
            names = ["broadcast_buffers", "forward_sync_buffers"]
            if unused:
                names.append("require_backward_grad_sync")  # which are used is summed, too
            ddp.paceline_sums = {name: getattr(ddp, name) for name in names if hasattr(ddp, name)}
            type(ddp).paceline_register(ddp, ddp, sum_in_turns)
            self.start_turn()

    def module_of(self, optimizer):
        """A program may have several, as a generator and its critic."""
        of_optimizer = {id(each) for group in optimizer.param_groups for each in group["params"]}
        return next((ddp for ddp in self.ddp if any(id(each) in of_optimizer for each in ddp.parameters())),
                    self.counted)

    def count_without_ddp(self, module_class):
        """One replica alone may build none: then its first module that trains stands for it."""
        def see(module, _):
            if self.counted is None and module.training and self.torch.is_grad_enabled() and \
                    any(each.requires_grad for each in module.parameters()):
                self.counted = module
                module.register_forward_pre_hook(self.forward, with_kwargs=True)
            if self.counted is not None:
                handle.remove()
        handle = module_class.register_module_forward_pre_hook(see)

    def forward(self, module, arguments, named):
        if module is not self.counted:
            return  # a copy
        start = now()
        if getattr(getattr(module, "_join_config", None), "enable", False):
            self.staying.add("join")  # in which ranks ask each other in each step
        # Lightning leaves the outer module as it was in a validation.
        if (module.training or getattr(module, "module", module).training) and self.torch.is_grad_enabled():
            self.forwards += 1
            count = samples_of(list(arguments) + list(named.values()), self.torch)
            self.largest = max(self.largest, count)
            if self.measures:
                self.samples += count
                self.turn.overhead += now() - start

    # Steps.

    def before_step(self, optimizer, arguments, named):
        if self.may_take("sums"):
            for group in optimizer.param_groups:
                rate = group.get("lr")
                self.rates.append((optimizer, group, rate.clone() if hasattr(rate, "clone") else rate))
                set_rate(group, 0.0)

    def after_step(self, optimizer, arguments, named):
        start = now()
        while self.rates and self.rates[-1][0] is optimizer:  # which may have stepped another
            set_rate(*self.rates.pop()[1:])
        if self.optimizer is None:
            distributed = self.torch.distributed
            if distributed.is_initialized():
                self.rank, self.world = distributed.get_rank(), distributed.get_world_size()
            elif not self.trains() or not (self.ddp or of_launcher(RANKS, 0, -1) >= 0):
                return
            self.optimizer = optimizer
            self.counted = self.module_of(optimizer)
            atexit.register(self.end_early)
            if is_child():  # a forked one ends without it
                multiprocessing.util.Finalize(None, self.end_early, exitpriority=100)
            self.bind()
        if optimizer is not self.optimizer:
            self.steps_of_others += 1
            if self.steps_of_others < REPLACED:
                return
            if len(self.turn.times) >= FEWEST:
                self.end()
            self.begin()  # as it was that of a warm-up or a part
            self.optimizer, self.counted = optimizer, self.module_of(optimizer)
        self.steps, self.steps_of_others = self.steps + 1, 0
        warm, last = self.settings["warm"], self.settings["steps"]
        if self.steps in (warm, last) and self.is_cuda():
            self.synchronize()
        at = now()
        if self.is_warm and self.started and self.takes_turns:  # which would have it in one of them
            self.begun.append((self.turn, at - self.at, self.waited))
        elif self.measures:
            self.turn.times.append(at - self.at)
            self.turn.forwards.append(self.forwards - self.forwards_before)
            self.turn.samples += self.samples
            self.turn.elements += self.elements
            self.turn.wait += self.waited
            if self.started:
                self.turn.starts.append(len(self.turn.times) - 1)
        if self.steps == warm:
            self.is_warm, self.warm_at = True, at
        self.at, self.forwards_before, self.started = at, self.forwards, False
        self.samples = self.elements = self.waited = 0
        if self.steps >= warm:
            self.choose_turn(self.steps - warm)
        self.turn.overhead += now() - start if self.measures else 0.0
        if self.steps == last and self.settings.get("profile"):
            self.start_profile()
        elif self.profile_step() if self.frozen is not None else self.steps >= last:  # ranks may drift apart
            self.end()
        elif self.settings["seconds"] and self.measures:
            self.shorten()

    def choose_turn(self, step):
        """Of the next step; in another order each time, as a program may do something every ten steps."""
        self.measures = True
        if self.takes_turns:
            number, at = divmod(step, self.takes_turns["turn"])
            self.measures = at >= self.takes_turns["settle"]
            if at > 0:
                return
            self.let_others_go()
            self.wait_for(range(self.world))
            if number % len(self.turns) == 0:
                seed = "%s %d" % (os.path.basename(self.settings["out"]), number)  # another one in each run
                self.order = random.Random(seed).sample(self.turns, len(self.turns))
            self.turn = self.order[number % len(self.turns)]
            self.turn.parts.append(len(self.turn.times))
            self.start_turn()
            self.bind()
            self.alone += self.takes("others")
            if self.rank > 0 and self.steps < self.settings["steps"]:
                self.wait_for([0])
            self.at = now()

    def let_others_go(self):
        if self.takes("others"):
            self.write("alone%d.%d" % (self.alone, self.rank), True)

    def wait_for(self, ranks):
        """Until they have made their steps of a turn in which rank 0 is alone."""
        start, place = now(), "%s/alone%d.%%d" % (self.settings["out"], self.alone)
        while self.takes("others") and not all(os.path.exists(place % rank) for rank in ranks):
            if now() - start > max(30, 2 * (start - self.built)):
                raise RuntimeError("a rank waits for others where it should be alone")
            time.sleep(0.01)

    def start_turn(self):
        for ddp in self.ddp if self.may_take("sums") else ():
            for name, own in ddp.paceline_sums.items():
                setattr(ddp, name, own and not self.takes("sums"))

    def start_profile(self):
        self.measures = False
        self.frozen = self.result()
        profiler = self.torch.profiler
        watched = [profiler.ProfilerActivity.CPU] + ([profiler.ProfilerActivity.CUDA] if self.is_cuda() else [])
        try:
            # Steps are marked only where there is a schedule; this one ends after them.
            schedule = profiler.schedule(wait=0, warmup=0, active=self.settings["profile"] + 2)
            self.profiler = profiler.profile(activities=watched, record_shapes=True, schedule=schedule)
            self.profiler.start()
        except Exception:  # pylint: disable=broad-except
            self.profiler = None  # the program's own is running, or this machine has none that works

    def profile_step(self):
        """Whether it was the last one."""
        if self.profiler is None:
            return True
        try:
            self.profiler.step()
            if self.steps < self.settings["steps"] + self.settings["profile"]:
                return False
            self.profiler.stop()
            self.profiler.export_chrome_trace(os.path.join(self.settings["out"], "trace_rank%d.json" % self.rank))
        except Exception:  # pylint: disable=broad-except
            pass  # what was measured counts without it
        return True

    def shorten(self):
        """By rank 0, when it has seen enough; others look at each step, of which this run has few."""
        place = os.path.join(self.settings["out"], "last_step")
        if self.rank == 0:
            if now() - self.warm_at < self.settings["seconds"]:
                return
            self.settings["steps"] = min(self.settings["steps"], self.steps + 20)
            self.write("last_step", self.settings["steps"])
        elif os.path.exists(place):
            with open(place, encoding="utf-8") as file:
                self.settings["steps"] = json.load(file)
        else:
            return
        self.settings["seconds"] = 0

    def bind(self):
        """Binds the rank to its share of the CPUs, where that is to be tried, else as it was."""
        count, is_bound = self.settings["threads"], self.takes("threads")
        if not is_bound and not self.own_cpus:
            return
        self.own_threads = self.own_threads or self.torch.get_num_threads()
        first = of_launcher(LOCAL, 0, self.rank) * count
        processes = [os.getpid()] + [worker.pid for worker in multiprocessing.active_children()]
        for place in [each for process in processes for each in glob.glob("/proc/%d/task/*" % process)]:
            with contextlib.suppress(OSError):  # it may have ended
                task, cpus = int(os.path.basename(place)), self.settings["cpus"][first:first + count]
                if is_bound:
                    self.own_cpus.setdefault(task, os.sched_getaffinity(task))
                else:  # one that began while it was bound has what the main thread had
                    cpus = self.own_cpus.get(task, self.own_cpus[os.getpid()])
                os.sched_setaffinity(task, cpus)
        self.torch.set_num_threads(count if is_bound else self.own_threads)

    # Results.

    def seconds_of_epochs(self):
        """Of a step, in turns: what those in which a loader starts take beyond others, and of that in loaders."""
        beyond = [(seconds - middle(turn.times), waited - turn.wait / len(turn.times))
                  for turn, seconds, waited in self.begun if turn.times and "data" not in turn.take]
        steps = self.steps - self.settings["warm"]
        return [len(self.begun) / steps * sum(each) / len(beyond) for each in zip(*beyond)] or [0, 0]

    def result(self):
        optimizer = self.optimizer
        kinds = {"FlatParameter" if getattr(each, "_is_flat_param", False) else type(each).__name__
                 for group in optimizer.param_groups for each in group["params"]} if optimizer is not None else set()
        loaded = [name for name in OTHERS if name in sys.modules]
        why_no_sums = ""
        if kinds & {"DTensor", "FlatParameter"}:
            why_no_sums = "its parameters are sharded (FSDP or DTensor)"
        elif not self.ddp:
            why_no_sums = "it does not build DistributedDataParallel" + \
                (" (%s is loaded)" % loaded[0] if loaded else "")
        world_here = of_launcher(LOCAL, 1, self.world)
        return dict(
            self.facts, rank=self.rank, world=self.world, local_world=world_here, steps_in_all=self.steps,
            goes_on=self.steps >= self.settings["steps"], batch=self.largest, batches=self.batches,
            epochs=self.seconds_of_epochs(),
            turns=[each.result(self.counted is not None) for each in self.turns],
            dropped=self.dropped, threads=self.torch.get_num_threads(), workers=self.workers,
            affinity=sorted(os.sched_getaffinity(0)),
            on_gpu=self.is_cuda(), why_no_sums=why_no_sums, torch=str(self.torch.__version__),
            staying=sorted(self.staying),
            lengths=[[source, length] for source, length in self.lengths.items() if source[-1] is None],
            bucket_mb=getattr(self.ddp[0], "bucket_bytes_cap", 0) / 2**20 if self.ddp else 0,
            optimizer=type(optimizer).__name__)

    def write(self, name, value):
        place = os.path.join(self.settings["out"], name)
        with open(place + ".part", "w", encoding="utf-8") as out:
            json.dump(value, out)
        os.replace(place + ".part", place)

    def end(self):
        """Ends the process, when nobody needs it any more."""
        self.write_all(300)
        if self.rank == 0:
            self.write("ended", True)
        done, deadline = os.path.join(self.settings["out"], "run.json"), now() + 60
        while not os.path.exists(done) and now() < deadline:
            time.sleep(0.01)
        end_process()

    def write_all(self, most_seconds):
        """Of this rank; by rank 0 also of all, when they have written theirs."""
        self.measures, self.has_written = False, True
        self.write("rank%d.json" % self.rank, self.frozen or self.result())
        pattern, deadline = os.path.join(self.settings["out"], "rank*.json"), now() + most_seconds
        while len(glob.glob(pattern)) < self.world and now() < deadline:
            time.sleep(0.01)
        if self.rank == 0 and len(glob.glob(pattern)) == self.world:
            self.summarize(pattern)

    def end_early(self):
        if not self.has_written:
            self.let_others_go()
            self.write_all(10)

    def summarize(self, pattern):
        ranks = []
        for name in glob.glob(pattern):
            with open(name, encoding="utf-8") as file:
                ranks.append(json.load(file))
        ranks.sort(key=lambda each: each["rank"])
        turns = [self.summary([dict(rank, **rank["turns"][i]) for rank in ranks])
                 for i in range(min(len(rank["turns"]) for rank in ranks))]
        self.write("run.json", dict(turns[0], turns=[turn for turn in turns[1:] if turn["is_whole"]]))

    def epochs_of_run(self, rank, steps):
        """What steps in which a loader starts take beyond the others: evaluations, starts of workers."""
        if "others" in rank["take"]:  # where no epoch of its run ended, it has more steps: the data are divided
            return steps * (self.takes_turns.get("alone_epochs") or rank["epochs"][0] / self.world)
        if rank["program"]:  # recorded batches need no loader
            return steps * (rank["epochs"][0] - ("data" in rank["take"]) * rank["epochs"][1])
        each, starts = rank["times"][:steps], {start for start in rank["starts"] if start < steps}
        others = [seconds for i, seconds in enumerate(each) if i not in starts]
        return sum(each[i] - middle(others) for i in starts) if others else 0.0

    def summary(self, ranks):
        """Of a turn of all ranks, or of rank 0 alone."""
        if "others" in ranks[0]["take"]:
            ranks = ranks[:1]
        steps = min(each["steps"] for each in ranks)
        epochs = [self.epochs_of_run(each, steps) for each in ranks]
        epochs = max(epochs[0], sum(epochs) / len(epochs))  # rank 0 alone may evaluate
        apart = epochs if ranks[0]["program"] else 0.0
        each_rank = [sum(each["times"][:steps]) + apart for each in ranks]
        seconds = max(each_rank)
        slowest = each_rank.index(seconds)
        others = each_rank[:slowest] + each_rank[slowest + 1:]
        unsaved = [total - each["save_seconds"] for each, total in zip(ranks, each_rank)]
        usual = sorted(unsaved)[:-1] or unsaved
        # Ranks that do not wait for each other: what they would take if each step began together.
        if "sums" in ranks[0]["take"] and not self.is_cuda():
            seconds = sum(map(max, zip(*(each["times"][:steps] for each in ranks)))) + apart
        data = [each["elements"] for each in ranks]  # rank 0 may have more, as where they are divided by length
        has_more = data[0] > 1.03 * sum(data[1:]) / max(len(data) - 1, 1)
        run = {key: value for key, value in ranks[0].items()
               if key not in ("times", "starts", "rank", "turns", "epochs", "parts")}
        run.update(
            ranks=len(ranks), steps=steps, seconds=seconds, slowest_rank=slowest,
            first_seconds=0.0 if has_more else each_rank[0],
            others_seconds=sum(others) / len(others) if others else seconds,
            rank_0_seconds=0.0 if has_more else unsaved[0] - sum(usual) / len(usual),
            epoch_seconds=epochs,
            all_cpus=len(set().union(*(each["affinity"] for each in ranks))))
        for combine, names in ((sum, ("samples", "saves", "elements")), (min, ("ratio", "steps_in_all")),
                               (max, ("wait", "own_seconds", "save_seconds", "sync_seconds", "overhead",
                                      "changes_batches"))):
            run.update((name, combine(each[name] for each in ranks)) for name in names)
        if steps:
            run.update(steps_per_second=steps / seconds)
        if steps and run["samples"]:
            run.update(samples_per_second=run["samples"] / seconds, global_batch=run["samples"] / steps)
        if ranks[0]["parts"]:  # tell how noisy the whole is
            wanted, parts = self.takes_turns["turn"] - self.takes_turns["settle"], ranks[0]["parts"] + [steps]
            run["parts"] = [self.summary([part_of(each, begin, end) for each in ranks])
                            for begin, end in zip(parts, parts[1:]) if 2 * (min(end, steps) - begin) > wanted]
        return run


def part_of(rank, begin, end):
    """Some of a rank's steps."""
    times = rank["times"][begin:end]
    share = len(times) / len(rank["times"])
    return dict(rank, times=times, steps=len(times), starts=[], parts=[], samples=rank["samples"] * share,
                save_seconds=rank["save_seconds"] * share)


def timed(hook, function, total, is_taken, skipped):
    """`function`, with its calls and seconds added to that of a turn in measured steps."""
    @functools.wraps(function)
    def call(*arguments, **named):
        if is_taken():
            return skipped(*arguments, **named)
        start = now()
        try:
            return function(*arguments, **named)
        finally:
            hook.count(total, start)
    return call


def for_program_only(hook, function, measured):
    """`measured`, but `function` where torch itself calls it, or a communication hook of DDP."""
    @functools.wraps(function)
    def call(*arguments, **named):
        caller = sys._getframe(1).f_globals.get("__name__", "")
        is_torchs = caller.startswith("torch.") and not caller.startswith(PROGRAMS)
        return (function if hook.in_ddp or is_torchs else measured)(*arguments, **named)
    return call


def reading(hook, function):
    """`function` of a GPU's tensor; where waits are taken away, the value that was read here before."""
    @functools.wraps(function)
    def call(tensor, *arguments):
        if hook.reads or not tensor.is_cuda:
            return function(tensor, *arguments)
        caller = sys._getframe(1)
        place = (caller.f_code, caller.f_lasti, function)
        if hook.takes("syncs") and hook.is_warm and place in hook.read:
            return hook.read[place]
        start, hook.reads = now(), True
        try:
            value = hook.read[place] = function(tensor, *arguments)
        finally:
            hook.reads = False
        hook.count("syncs", start)
        return value
    return call


def start_alone(distributed):
    """Ranks that a program numbers itself, as with mp.spawn: all but the first end where they would meet."""
    start = distributed.init_process_group
    order = list(inspect.signature(start).parameters)

    @functools.wraps(start)
    def init(*arguments, **named):
        given = dict(zip(order, arguments), **named)
        rank = given.get("rank", -1)
        if (rank if rank >= 0 else of_launcher(RANKS, 0, 0)) > 0:
            end_process()
        given.update(world_size=1, rank=0)
        start(**given)
    distributed.init_process_group = init


def install(torch, settings, check):
    if os.environ.get("PACELINE_WHY_AGENT") == str(os.getpid()):
        return
    if settings["replicas"] == "1" and not is_child():
        if of_launcher(RANKS, 0, 0) > 0:
            end_process()
        for _, size in () if settings.get("keeps_sizes") else RANKS + LOCAL:
            if size in os.environ:
                os.environ[size] = "1"
    if not hasattr(torch, "distributed") or not torch.distributed.is_available():
        return
    from torch.nn.modules import module as modules
    from torch.nn.parallel import DistributedDataParallel as Ddp
    from torch.optim import optimizer
    from torch.utils.data import DataLoader
    global HOOK
    hook = HOOK = Hook(torch, settings, check)

    if settings["replicas"] == "1":
        start_alone(torch.distributed)
        hook.count_without_ddp(modules)
    if of_launcher(RANKS, 0, -1) < 0 and not is_child():
        # A program that starts its ranks itself may not like how they end, or wait for what they return.
        ended = os.path.join(settings["out"], "ended")
        atexit.register(lambda: os.path.exists(ended) and end_process())
        threading.Thread(target=end_process_after, args=(ended,), daemon=True).start()

    init, register, loader_init, iterate = Ddp.__init__, Ddp.register_comm_hook, DataLoader.__init__, \
        DataLoader.__iter__

    @functools.wraps(init)
    def ddp_init(ddp, *arguments, **named):
        if settings["bucket_mb"]:
            named["bucket_cap_mb"] = settings["bucket_mb"]
        init(ddp, *arguments, **named)
        hook.ddp_built(ddp)

    @functools.wraps(register)
    def register_comm_hook(ddp, state, hook):  # named as DDP's own
        HOOK.facts["comm_hook"] = getattr(hook, "__qualname__", "unnamed")

        @functools.wraps(hook)
        def of_ddp(*given):
            HOOK.in_ddp = True
            try:
                return hook(*given)
            finally:
                HOOK.in_ddp = False
        if HOOK.may_take("sums"):
            ddp.paceline_hook = functools.partial(of_ddp, state)
        else:
            register(ddp, state, of_ddp)

    @functools.wraps(loader_init)
    def with_settings(loader, *arguments, **named):
        given = inspect.signature(loader_init).bind(loader, *arguments, **named).arguments
        more = given.pop("kwargs", {})
        given.update(more)
        if settings["workers"]:
            given["num_workers"] = settings["workers"]
        if settings["batch"] and given.get("batch_sampler") is None and given.get("batch_size", 1) is not None:
            given["batch_size"] = settings["batch"]
        given.pop("self", None)
        loader_init(loader, **given)

    Ddp.__init__, Ddp.paceline_register, Ddp.register_comm_hook = ddp_init, register, register_comm_hook
    if settings["workers"] or settings["batch"]:
        DataLoader.__init__ = with_settings
    DataLoader.__iter__ = lambda loader: Batches(hook, loader, iterate) if hook.trains() else iterate(loader)
    optimizer.register_optimizer_step_pre_hook(hook.before_step)
    optimizer.register_optimizer_step_post_hook(hook.after_step)
    for name in OWN:
        function = getattr(torch.distributed, name, None)
        if function is None:
            continue
        order = list(inspect.signature(function).parameters)

        def is_taken(name=name):
            if hook.is_warm and name not in TAKEN_OWN:
                hook.staying.add(name)
                hook.turn.is_shared = True
                if hook.rank == 0:
                    hook.let_others_go()  # as it waits for them here
            return hook.is_warm and name in TAKEN_OWN and (hook.takes("own") or hook.takes("sums"))

        def skip(*given, name=name, order=order, **named):
            return skipped_call(name, order, given, named)
        measured = timed(hook, function, "own", is_taken, skip)
        setattr(torch.distributed, name, for_program_only(hook, function, measured))

    join_hook = getattr(sys.modules.get("torch.nn.parallel.distributed"), "_DDPJoinHook", None)
    if join_hook is not None:
        shadow = join_hook.main_hook

        @functools.wraps(shadow)
        def main_hook(joined):
            """A rank that has no data left in join() takes part in a step of the others."""
            shadow(joined)
            if joined.ddp is hook.counted and joined.ddp.require_forward_param_sync and hook.optimizer is not None:
                hook.after_step(hook.optimizer, (), {})
        join_hook.main_hook = main_hook

    # Whether there is a GPU is not asked: the question starts CUDA, and a program may fork first.
    for name in READS:
        setattr(torch.Tensor, name, reading(hook, getattr(torch.Tensor, name)))
    torch.cuda.synchronize = timed(hook, hook.synchronize, "syncs", lambda: hook.takes("syncs") and hook.is_warm,
                                   lambda *_, **__: None)

    def make_empty(obj, f, *_, **__):  # named as torch.save's own
        if isinstance(f, (str, os.PathLike)):
            with open(f, "ab"):
                pass
    save = torch.save

    @functools.wraps(save)
    def guarded(obj, f, *arguments, **named):
        if check is not None and isinstance(f, (str, os.PathLike)):
            check(f)
        return save(obj, f, *arguments, **named)
    torch.save = timed(hook, guarded, "saves", lambda: hook.takes("saves") and hook.is_warm, make_empty)
