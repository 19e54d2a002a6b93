# shellcheck shell=bash disable=SC2154,SC2034  # what these use is set by run, which sources them
# Several cards of a node, and of two nodes in a Slurm job: whether ranks sum at all, to the right
# values, over which transports, how fast, and whether a lost one ends the others.

cards_here() {
  if ((rehearse)); then echo 2; return; fi
  if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then tr ',' '\n' <<< "$CUDA_VISIBLE_DEVICES" | grep -c .; return; fi
  timeout --kill-after=5 10 nvidia-smi -L 2> /dev/null | grep -c '^GPU '
}

# sums WHAT NAME REFERENCE STATUS: the row of a training beside one replica's of the whole batch, in the section that runs.
sums() {
  local one two transports
  if (($4 != 0)); then row "$section" "$1" "" "" "$(unless_done "$4")" "$(why "$2")"; tests_failed=1; return; fi
  one=$(value train_loss "$3") two=$(value train_loss "$2")
  transports=$(grep -oE 'transports [^"]*' "$records/$2.json" | head -n 1)
  if [ "$(calc "%d" "($one - $two) ^ 2 < ($one * 0.001) ^ 2")" = 1 ]; then
    row "$section" "$1" "loss $two, one replica's $one" "$transports" passed
  else
    row "$section" "$1" "loss $two, one replica's $one" "$transports" failed "they differ"
    tests_failed=1
  fi
}

small=(mnist-cnn --precision fp32 --steps 20 --evaluate none)

# two_nodes TASKS NAME GPUS ARGUMENTS...: TASKS a node with GPUS a node, on the first two nodes of a job, each task seeing all
# cards of its node.
two_nodes() {
  local tasks=$1 name=$2 gpus=$3
  shift 3
  limited 90 "$name" srun --nodes=2 --ntasks-per-node="$tasks" --gpus-per-node="$gpus" --gpu-bind=none --kill-on-bad-exit=0 \
    "$paceline" train "${small[@]}" --cpus-per-task $((gpus / tasks)) --gpus $((2 * gpus)) --nodes 2 --batch-per-replica 32 --device "$device" \
    --record "$records/$name.json" --quiet "$@"
}

section_several() {
  local cards cpus backend name what nccl=nccl one
  cards=$(cards_here)
  if ((rehearse)); then nccl=ring small[2]=$plain; fi  # the precision
  if ((cards < 2)); then
    row several "2 cards or more" "" "" skipped "this process sees $cards; ask for more, with --gpu-bind=none"
    return
  fi
  if ! train several-1 60 "${small[@]}" --cpus-per-task 1 --gpus 1 --backend self --batch-per-replica $((32 * cards)); then
    row several "one replica" "" "" failed "$(why several-1)"
    tests_failed=1
    return
  fi
  for backend in "$nccl" mirrored $( ((rehearse)) || echo ring); do
    name=several-$backend what="$cards cards through $backend"
    cpus=1
    if [ "$backend" = mirrored ]; then cpus=$cards; fi
    train "$name" 90 "${small[@]}" --cpus-per-task "$cpus" \
      --gpus "$cards" --backend "$backend" --batch-per-replica 32
    sums "$what" "$name" several-1 $?
  done
  if ((!rehearse)); then
    train several-parts 60 "${small[@]}" --cpus-per-task 1 --gpus "$cards" --backend "$nccl" --batch-per-replica 32 --no-step-graph
    sums "$cards cards through $nccl, graphs of parts" several-parts several-1 $?
  fi
  loses_a_rank "$cards" "$nccl"
  several_speeds "$cards" "$nccl"
  if [ -z "${SLURM_JOB_ID:-}" ] || ((${SLURM_JOB_NUM_NODES:-1} < 2)); then
    row several "two nodes" "" "" skipped "not in a Slurm job of two nodes; salloc -N 2 --gres=gpu:$cards"
    return
  fi
  one=several-two-nodes-1
  train "$one" 60 "${small[@]}" --cpus-per-task 1 --gpus 1 --backend self --batch-per-replica $((64 * cards)) ||
    row several "one replica of the batch of two nodes" "" "" failed "$(why "$one")"
  two_nodes "$cards" several-two-nodes "$cards" --backend "$nccl"
  sums "2 nodes of $cards cards through $nccl" several-two-nodes "$one" $?
  two_nodes 1 several-mirrored-nodes "$cards" --backend "mirrored/$nccl"
  sums "2 nodes of $cards cards through mirrored/$nccl" several-mirrored-nodes "$one" $?
}

# Two ranks of NCCL share the card, which NCCL permits since 2.30.3 if it is asked: that they join, register memory and sum, in a
# step's graph too, and that a lost one ends the other. Their time is not that of two cards.
section_ranks() {
  local what="2 ranks of NCCL on one card" least=2.30.3 found run extra
  if ((rehearse)); then row ranks "$what" "" "" skipped "no NCCL on device $device"; return; fi
  found=$(doctor_says backends nccl)
  found=$(sed -n 's/^NCCL \([0-9.]*\).*/\1/p' <<< "$found")
  if [ -z "$found" ]; then row ranks "$what" "" "" skipped "no NCCL was found"; return; fi
  if [ "$(printf '%s\n' "$least" "$found" | sort -V | head -n 1)" = "$least" ]; then
    local -x NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0
  else  # two nodes to NCCL, over sockets
    local -x PACELINE_NCCL_RANKS_AS_NODES=1 NCCL_SOCKET_IFNAME=lo
    what+=", as two nodes"
  fi
  train ranks-1 40 "${small[@]}" --cpus-per-task 1 --gpus 1 --backend self --batch-per-replica 64
  for run in graph parts; do
    extra=()
    if [ "$run" = parts ]; then extra=(--no-step-graph); fi
    train "ranks-$run" 60 "${small[@]}" --cpus-per-task 1 --gpus 2 --backend nccl --batch-per-replica 32 ${extra[@]+"${extra[@]}"}
    sums "$what, sums in graphs of ${run/graph/steps}" "ranks-$run" ranks-1 $?
  done
  loses_a_rank 2 nccl
}

# A rank is killed; the others and the launcher have to end by themselves, with 71.
loses_a_rank() {
  local what="a lost rank ends $1 through $2" log=$records/logs/$section-lost.log launcher ranks=() status began
  if ((deadline - SECONDS < 60)); then row "$section" "$what" "" "" skipped "no time was left"; return; fi
  "$paceline" train mnist-cnn --device "$device" --gpus "$1" --backend "$2" --cpus-per-task 1 --batch-per-replica 32 \
    --steps 100000000 --evaluate none --abort-seconds 30 --record "$records/$section-lost.json" > "$log" 2>&1 < /dev/null &
  launcher=$!
  began=$SECONDS
  while ((${#ranks[@]} < $1 && SECONDS - began < 30)) && kill -0 "$launcher" 2> /dev/null; do
    sleep 1
    read -r -a ranks < <(cat "/proc/$launcher/task/"*/children 2> /dev/null | tr '\n' ' ')
  done
  if ((!rehearse)); then sleep 15; else sleep 2; fi  # steps are graphs by then
  if ((${#ranks[@]} < $1)); then
    kill "$launcher" 2> /dev/null
    wait "$launcher"
    row "$section" "$what" "" "" failed "it has not started $1 ranks: $(why "$section-lost")"
    tests_failed=1
    return
  fi
  kill -9 "${ranks[-1]}" 2> /dev/null
  began=$SECONDS
  (sleep 45; kill -9 "$launcher" 2> /dev/null) &
  wait "$launcher"
  status=$?
  kill $! 2> /dev/null
  if ((status == 71)); then
    row "$section" "$what" "exit code 71 after $((SECONDS - began)) s" "" passed
  else
    row "$section" "$what" "exit code $status after $((SECONDS - began)) s, not 71" "" failed "$(why "$section-lost")"
    tests_failed=1
  fi
}

# ResNet-50 on one card and on all, as one graph and in parts.
several_speeds() {
  local cards=$1 backend=$2 alone all run extra replicas=(--gpus 1 --backend self)
  resnet several-speed-1 120 resnet50-imagenet 128 bf16 50
  speed several "resnet50-imagenet 224/b128 bf16, 1 card" several-speed-1 $?
  alone=$(value p50 several-speed-1)
  for run in graph $( ((rehearse)) || echo parts); do
    extra=()
    if [ "$run" = parts ]; then extra=(--no-step-graph); fi
    replicas=(--gpus "$cards" --backend "$backend" --cpus-per-task 1)
    resnet "several-speed-$run" 120 resnet50-imagenet 128 bf16 50 ${extra[@]+"${extra[@]}"}
    speed several "resnet50-imagenet 224/b128 bf16, each of $cards cards, $run" "several-speed-$run" $?
    all=$(value p50 "several-speed-$run")
    if [ -n "$alone" ] && [ -n "$all" ] && ((!rehearse)); then
      row several "speed-up of $cards cards, $run" "$(calc "%.2f" "$cards * $alone / $all")" \
        "$(calc "%.0f %% efficient" "100 * $alone / $all")" passed
    fi
  done
}
