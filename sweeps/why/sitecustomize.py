"""Of `paceline why`: stands first on PYTHONPATH, and waits for `torch` (see paceline_why.py).

Passes on to the sitecustomize that would have been found without it.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit events that change files, and which of their arguments are paths; some change what a link leads to.
CHANGES = {"os.remove": (0,), "os.rename": (0, 1), "os.mkdir": (0,), "os.rmdir": (0,), "os.truncate": (0,),
           "shutil.rmtree": (0,), "os.link": (1,), "os.symlink": (1,), "os.chmod": (0,), "os.utime": (0,)}
FOLLOWING = ("os.truncate", "os.chmod", "os.utime")
AGENT = "PACELINE_WHY_AGENT"  # the process of torchrun that starts ranks


def hold(settings):
    """Has the kernel refuse what it refuses the launcher (Landlock).

    Processes that a daemon starts, as Slurm's tasks, and those in a container do not inherit it.
    """
    try:
        os.close(os.open(os.path.join(HERE, "sitecustomize.py"), os.O_WRONLY))  # which nothing else refuses
        import ctypes
    except (OSError, ImportError):
        return
    libc, long = ctypes.CDLL(None), ctypes.c_long
    access, create, add, restrict, no_new_privileges = settings["landlock"], 444, 445, 446, 38
    rules = libc.syscall(long(create), struct.pack("=Q", access), long(8), long(0))
    for folder in settings["writable"]:
        if os.path.exists(folder):
            place = os.open(folder, os.O_PATH)
            libc.syscall(long(add), long(rules), long(1), struct.pack("=Qi", access, place), long(0))
            os.close(place)
    if rules >= 0:
        libc.prctl(no_new_privileges, long(1), long(0), long(0), long(0))
        libc.syscall(long(restrict), long(rules), long(0))
        os.close(rules)


def install_guard(settings):
    """Refuses what Python writes elsewhere, and names it; libraries are held by the kernel."""
    allowed = [os.path.realpath(path) for path in settings["writable"]]
    refused = os.path.join(settings["out"], "refused.%d" % os.getpid())
    busy = []

    def check(path, follows=True):
        if busy or not isinstance(path, (str, bytes, os.PathLike)):
            return
        place = os.path.abspath(os.fsdecode(path))
        place = os.path.realpath(place) if follows else \
            os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
        if any(place == each or place.startswith(each.rstrip("/") + "/") for each in allowed):
            return
        busy.append(True)
        try:
            with open(refused, "a", encoding="utf-8", errors="replace") as out:
                out.write(place.replace("\n", " ") + "\n")
        finally:
            busy.pop()
        raise PermissionError(13, "paceline why refuses to write outside of the copy", place)

    def audit(event, arguments):
        if event == "open":
            if arguments[2] is not None and arguments[2] & WRITES:
                check(arguments[0])
        elif event == "os.mkdir" and os.path.isdir(arguments[0]):
            pass  # as makedirs asks for what may be there
        elif event in CHANGES:
            for index in CHANGES[event]:
                check(arguments[index], event in FOLLOWING)

    sys.addaudithook(audit)
    return check


def is_torchrun():
    words = list(getattr(sys, "orig_argv", []))[:4]
    return any(os.path.basename(word) == "torchrun" or word in ("torch.distributed.run", "torch.distributed.launch")
               for word in words)


def start_ranks(settings):
    """As torchrun started them in the first run, without the seconds in which it imports torch itself."""
    import socket
    import subprocess
    import time
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    ranks, failed = [], 0
    for rank in range(1 if settings["replicas"] == "1" else settings["launches"]):
        with open(os.path.join(settings["launched"], "launch%d.json" % rank), encoding="utf-8") as file:
            words, environment = json.load(file)
        environment.update({"MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "False", AGENT: os.environ[AGENT],
                            "PACELINE_WHY": os.environ["PACELINE_WHY"]})
        environment.pop("TORCHELASTIC_ERROR_FILE", None)
        ranks.append(subprocess.Popen(words, env=environment))
    left = list(ranks)
    while left and not failed:
        time.sleep(0.02)
        failed = next((rank.returncode for rank in left if rank.poll()), 0)
        left = [rank for rank in left if rank.returncode is None]
    for rank in left:
        rank.kill()
    os._exit(abs(failed))


class TorchWaiter(importlib.abc.MetaPathFinder):
    """Finds nothing; what others find of `torch` is loaded by them, then measured."""

    def __init__(self, settings, check):
        self.settings, self.check = settings, check

    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)  # a library may only ask whether there is a torch
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                del spec.loader.exec_module
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                load(module)
                path = importlib.util.spec_from_file_location("paceline_why", os.path.join(HERE, "paceline_why.py"))
                hook = sys.modules["paceline_why"] = importlib.util.module_from_spec(path)
                path.loader.exec_module(hook)
                hook.install(module, self.settings, self.check)

            spec.loader.exec_module = exec_module
        return spec


def pass_on():
    others = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if os.environ.get("PACELINE_WHY"):
    chosen = json.loads(os.environ["PACELINE_WHY"])
    if chosen.get("landlock"):
        hold(chosen)
    guard = install_guard(chosen) if chosen.get("writable") else None
    if is_torchrun():
        os.environ[AGENT] = str(os.getpid())
        if chosen.get("launches"):
            start_ranks(chosen)
    sys.meta_path.insert(0, TorchWaiter(chosen, guard))
pass_on()
