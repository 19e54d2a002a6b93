"""A stand-in for PyTorch with the interface that sweeps/why/paceline_why.py uses, for tests without it.

Work is sleep, so that runs side by side do not slow each other down. Two ranks sum over a socket.
"""
import collections
import contextlib
import functools
import json
import math
import os
import sys
import time
import types

__version__ = "stand-in"
settings = {"transfer": 0.0005}


def module(name, **members):
    made = sys.modules["torch." + name] = types.ModuleType("torch." + name)
    made.__dict__.update(members)
    return made


inference = [False]


@contextlib.contextmanager
def inference_mode(mode=True):
    before, inference[0] = inference[0], mode
    yield
    inference[0] = before


class Tensor:
    def __init__(self, shape):
        self.shape, self.changes, self.device = shape, 0, types.SimpleNamespace(type="cpu")
        self.is_of_inference = inference[0]

    @property
    def _version(self):
        if self.is_of_inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self.changes

    is_cuda = "STAND_IN_CUDA" in os.environ
    requires_grad = True

    def item(self):
        time.sleep(0.01)
        return 1.0

    def __bool__(self):
        return True

    def __int__(self):
        return 1

    tolist = __float__ = item

    def numel(self):
        return math.prod(self.shape)

    def reshape(self, shape):
        return Tensor(shape)

    def view(self, _, width):
        return Tensor([self.numel() // width, width])

    def unbind(self):
        return [Tensor(self.shape[1:]) for _ in range(self.shape[0])]

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: id(self))

    def dim(self):
        return len(self.shape)

    def detach(self):
        return self

    def clone(self):
        return Tensor(self.shape)

    def copy_(self, other):
        self.shape = other.shape

    def is_pinned(self):
        return False

    def add_(self, _):
        self.changes += 1
        return self

    div_ = add_


def is_grad_enabled():
    return True


def get_num_threads():
    return settings.get("threads", int(os.environ.get("OMP_NUM_THREADS", "1")))


def set_num_threads(threads):
    settings["threads"] = threads


def save(obj, f):
    time.sleep(settings.get("save", 0))
    with open(f, "w", encoding="utf-8") as file:
        file.write(str(obj))


class Future:
    def set_result(self, value):
        self.value = lambda: value

    def then(self, function):
        function(self)
        return self


def exchange():
    peer = os.environ.get("STAND_IN_PEER")
    if peer and distributed.get_world_size() > 1:
        os.write(int(peer), b"x")
        while os.read(int(peer), 1) != b"x":
            pass
        time.sleep(settings["transfer"])


class Work:
    def __init__(self, tensor):
        self.future = Future()
        self.future.set_result([tensor])

    def get_future(self):
        return self.future

    def wait(self):
        return True


def all_reduce(tensor, group=None, async_op=False):
    exchange()
    return Work(tensor) if async_op else None


def all_gather(tensor_list, tensor, group=None, async_op=False):
    exchange()
    return types.SimpleNamespace(wait=lambda: True)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    exchange()


def broadcast(tensor, src=0):
    exchange()


futures = module("futures", Future=Future)
cuda = module("cuda", is_available=lambda: Tensor.is_cuda, is_initialized=lambda: Tensor.is_cuda,
              synchronize=lambda: None)
def of_launcher(*names):
    return int(next(os.environ[name] for name in names if name in os.environ))


group = {}


def init_process_group(backend=None, init_method=None, world_size=-1, rank=-1):
    group.update(world_size=world_size if world_size > 0 else get_world_size(), rank=rank if rank >= 0 else get_rank())


def get_rank():
    return group["rank"] if group else of_launcher("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def get_world_size():
    return group["world_size"] if group else of_launcher("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")


distributed = module("distributed", is_available=lambda: True, all_reduce=all_reduce, all_gather=all_gather,
                     all_gather_into_tensor=all_gather_into_tensor, broadcast=broadcast, barrier=exchange,
                     init_process_group=init_process_group, is_initialized=lambda: bool(group), get_rank=get_rank,
                     get_world_size=get_world_size)


of_all_modules = {}


class Handle:
    def __init__(self, hook):
        self.hook = hook
        of_all_modules[hook] = self

    def remove(self):
        of_all_modules.pop(self.hook, None)


class Module:
    def __init__(self, work):
        self.work, self.training, self.hooks, self.own = work, True, [], [Tensor([1])]

    def modules(self):
        return [self]

    def parameters(self):
        return iter(self.own)

    def register_forward_pre_hook(self, hook, with_kwargs=False):
        self.hooks.append(hook)

    def __call__(self, *arguments, **named):
        for hook in list(of_all_modules):
            hook(self, arguments)
        for hook in list(self.hooks):
            hook(self, arguments, named)
        time.sleep(self.work * settings.get("threads", 1))  # which are in each other's way

    def backward(self):
        pass


class DistributedDataParallel(Module):
    require_forward_param_sync = True

    def __init__(self, work, bucket_cap_mb=25, broadcast_buffers=True, find_unused_parameters=False):
        super().__init__(work)
        self.bucket_bytes_cap, self.comm_hook = bucket_cap_mb * 2**20, None
        self.find_unused_parameters, self.static_graph = find_unused_parameters, False
        self.require_backward_grad_sync = True
        self.module = types.SimpleNamespace(training=True)
        self.process_group = types.SimpleNamespace(size=get_world_size)

    def register_comm_hook(self, state, hook):
        if self.comm_hook is not None:
            raise RuntimeError("register_comm_hook can only be called once")
        self.comm_hook = functools.partial(hook, state)

    def backward(self):
        if not self.require_backward_grad_sync:
            return
        if self.find_unused_parameters:
            exchange()
        if self.comm_hook is not None:
            self.comm_hook(types.SimpleNamespace(buffer=lambda: Tensor([1])))
        else:
            for _ in range(max(1, round(25 * 2**20 / self.bucket_bytes_cap))):
                exchange()


class JoinHook:
    def __init__(self, ddp):
        self.ddp = ddp

    def main_hook(self):
        exchange()


nn = module("nn")
nn.parallel = module("nn.parallel", DistributedDataParallel=DistributedDataParallel)
nn.parallel.distributed = module("nn.parallel.distributed", _DDPJoinHook=JoinHook)
nn.modules = module("nn.modules")
nn.modules.module = module("nn.modules.module", register_module_forward_pre_hook=Handle)
before, after = [], []


class Optimizer:
    def __init__(self, lr, params=None):
        self.param_groups = [{"lr": lr, "params": list(params or [Tensor([1])])}]

    def step(self, closure=None):
        for hook in before:
            hook(self, (self,), {})
        if closure is not None:
            closure()
        for hook in after:
            hook(self, (self,), {})


optim = module("optim", Optimizer=Optimizer)
optim.optimizer = module("optim.optimizer", register_optimizer_step_pre_hook=before.append,
                         register_optimizer_step_post_hook=after.append)


class IterableDataset:
    pass


class DataLoader:
    def __init__(self, dataset, batch_size=1, num_workers=0):
        self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers

    def __len__(self):
        return self.dataset // self.batch_size

    def __iter__(self):
        time.sleep(settings.get("start", 0))
        for _ in range(self.dataset.batches if hasattr(self.dataset, "batches") else len(self)):
            time.sleep(settings.get("wait", 0) / max(self.num_workers, 1))
            yield collections.defaultdict(None, features=Tensor([self.batch_size, 4]), labels=[Tensor([self.batch_size])])


utils = module("utils")
utils.data = module("utils.data", DataLoader=DataLoader, IterableDataset=IterableDataset)


class Profile:
    """Of a step the first half is computing, then its sums are waited for."""

    def __init__(self, activities, record_shapes, schedule):
        self.began = []

    def start(self):
        self.began.append(time.perf_counter())

    step = start

    def stop(self):
        pass

    def export_chrome_trace(self, path):
        events = []
        for number, (begin, end) in enumerate(zip(self.began, self.began[1:])):
            begin, seconds = 1e6 * begin, 1e6 * (end - begin)
            for kind, name, at, share in (("user_annotation", "ProfilerStep#%d" % number, 0, 1),
                                          ("cpu_op", "aten::linear", 0, 0.5),
                                          ("user_annotation", "gloo:all_reduce", 0.5, 0.25)):
                events.append({"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 1, "ts": begin + at * seconds,
                               "dur": share * seconds, "args": {}})
        run = {"backend": "gloo", "rank": distributed.get_rank(), "world_size": distributed.get_world_size()}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "distributedInfo": run, "traceEvents": events}, file)


profiler = module("profiler", profile=Profile, schedule=lambda wait, warmup, active: active,
                  ProfilerActivity=types.SimpleNamespace(CPU="cpu", CUDA="cuda"))
