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

    Processes that a daemon starts, as Slurm's tasks, and those in a container do not inherit it. One that starts a
    container is not held, as that mounts.
    """
    if any(os.path.basename(word) in settings["runtimes"] for word in command_line("self")):
        return
    try:
        os.close(os.open(os.path.join(HERE, "sitecustomize.py"), os.O_WRONLY))  # which nothing else refuses
    except PermissionError:
        return
    except OSError:
        pass
    try:
        import ctypes
        libc, long = ctypes.CDLL(None), ctypes.c_long
        access, create, add, restrict, no_new_privileges = settings["landlock"], 444, 445, 446, 38
        rules = libc.syscall(long(create), struct.pack("=Q", access), long(8), long(0))
        failed = rules < 0
        for folder in settings["writable"]:
            if os.path.exists(folder) and not failed:
                place = os.open(folder, os.O_PATH)
                rule = struct.pack("=Qi", access, place)
                failed = libc.syscall(long(add), long(rules), long(1), rule, long(0)) != 0
                os.close(place)
        failed = failed or libc.prctl(no_new_privileges, long(1), long(0), long(0), long(0)) != 0 or \
            libc.syscall(long(restrict), long(rules), long(0)) != 0
    except (OSError, ImportError, AttributeError):
        failed = True
    if failed:
        with open(os.path.join(settings["out"], "unheld"), "w", encoding="utf-8"):
            pass


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


def command_line(process):
    with open("/proc/%s/cmdline" % process, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().split("\0")[:-1]


def is_torchrun():
    return any(os.path.basename(word) == "torchrun" or word in ("torch.distributed.run", "torch.distributed.launch")
               for word in command_line("self")[:4])


def keep_launch(settings):
    """How torchrun started this rank: its words, and what its environment has beside torchrun's."""
    agent = os.getppid()
    with open("/proc/%d/environ" % agent, encoding="utf-8", errors="surrogateescape") as file:
        own = set(file.read().split("\0"))
    beside = {name: value for name, value in os.environ.items()
              if name not in (AGENT, "PACELINE_WHY", "TORCHELASTIC_ERROR_FILE") and name + "=" + value not in own}
    with open(os.path.join(settings["out"], "launch%s.json" % os.environ["RANK"]), "w", encoding="utf-8") as file:
        json.dump([command_line(agent), [sys.executable] + command_line("self")[1:], beside], file)


def start_ranks(settings):
    """As torchrun started them in the first run, without the seconds in which it imports torch itself."""
    import socket
    import subprocess
    import time
    launches = []
    for rank in range(settings["launches"]):
        with open(os.path.join(settings["launched"], "launch%d.json" % rank), encoding="utf-8") as file:
            launches.append(json.load(file))
    if any(agent != command_line("self") for agent, _, _ in launches):
        return  # another torchrun of the same program
    with socket.socket() as free:
        free.bind(("", 0))
        own = {"MASTER_PORT": str(free.getsockname()[1]), "TORCHELASTIC_USE_AGENT_STORE": "False"}
    count = 1 if settings["replicas"] == "1" else len(launches)
    left, failed = [subprocess.Popen(words, env={**os.environ, **beside, **own}, start_new_session=True)
                    for _, words, beside in launches[:count]], 0
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
    if chosen.get("keeps_launch") and os.environ.get(AGENT) == str(os.getppid()) and \
            os.environ.get("GROUP_WORLD_SIZE") == "1" and \
            os.sched_getaffinity(0) == os.sched_getaffinity(os.getppid()):  # else torchrun binds its ranks
        keep_launch(chosen)
    if is_torchrun():
        os.environ[AGENT] = str(os.getpid())
        if chosen.get("launches"):
            start_ranks(chosen)
    sys.meta_path.insert(0, TorchWaiter(chosen, guard))
pass_on()
