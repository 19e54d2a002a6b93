"""Starts two ranks of a program, as torchrun does."""
import os
import socket
import subprocess
import sys

ends = socket.socketpair()
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]], pass_fds=[ends[rank].fileno()],
                          env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
                                   LOCAL_WORLD_SIZE="2", STAND_IN_PEER=str(ends[rank].fileno())))
         for rank in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
