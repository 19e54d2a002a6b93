#!/usr/bin/env bash
# two_hosts.sh COMMAND: rank 0 here, rank 1 in a network namespace behind a wire, which is cut once there
# is a file "cut" in the folder. In a user and network namespace of its own (unshare -Urn).
set -e
ip link set lo up
unshare -n sleep 1000 &
other=$!
until [ "$(readlink "/proc/$other/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
ip link add wire0 type veth peer name wire1 netns "$other"
ip addr add 10.77.0.1/24 dev wire0
ip link set wire0 up
there() { nsenter -t "$other" -n "$@"; }
there ip link set lo up
there ip addr add 10.77.0.2/24 dev wire1
there ip link set wire1 up
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=10.77.0.1 PACELINE_STORE=10.77.0.1
set +e
RANK=1 GROUP_RANK=1 there bash -c "$1" 2> of_1 &
one=$!
RANK=0 GROUP_RANK=0 bash -c "$1" &
zero=$!
while kill -0 $zero 2> /dev/null && [ ! -e cut ]; do sleep 0.1; done
ip link set wire0 down
wait $zero
code=$?
wait $one
echo $? > code_1
kill "$other"
exit $code
