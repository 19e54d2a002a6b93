# shellcheck shell=bash disable=SC2154,SC2034  # what these use and set is run's, which sources them
# What is asked of a card: a function a section, what is worth most first. Each leaves rows, and ends
# nothing but itself.

# What a bf16 step has to move an image with batch normalisation in two passes and the first pooling inside,
# in MB: ResNet-50 v1 at 300x300 and batch 32, v1.5 at 224x224 and batch 400.
mb_300=600 mb_224=329

section_machine() {
  local name
  limited 15 nvidia-smi nvidia-smi -q
  limited 15 nvidia-smi-query nvidia-smi --format=csv \
    --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit,mig.mode.current,pci.bus_id
  limited 15 versions bash -c 'uname -srm; ldd --version | head -n 1; nvcc --version; gcc --version | head -n 1; true'
  limited 40 doctor "$paceline" doctor --json
  limited 15 devices "$paceline" list devices
  {
    "$paceline" --version
    echo
    if ((rehearse)); then echo "device: $device"; else tail -n 1 "$records/logs/nvidia-smi-query.log"; fi
    echo
    echo "libraries of CUDA: ${PACELINE_CUDA_LIBS:-none found}"
  } > "$work/head.md"
  name=$(COLUMNS=1000 timeout --kill-after=5 60 "$paceline" doctor | sed -n "/^devices/,/^workloads/s/^  $device  *//p")
  if [[ $name == does\ not\ * ]]; then
    row machine "what device $device is" "" "" failed "$name"
  else
    row machine "what device $device is" "$name" "" passed
  fi
}

# test_row SECTION NAME PROGRAM ARGUMENTS: a program of GoogleTest's, its report kept.
test_row() {
  local section=$1 name=$2 program=$3 status passed skipped all reason
  local arguments=()
  IFS=$'\t' read -r -a arguments <<< "$4"
  limited 200 "$name" "$root/bin/$program" ${arguments[@]+"${arguments[@]}"} \
    --gtest_output="json:$records/tests/$name.json"
  status=$?
  if [ ! -s "$records/tests/$name.json" ]; then
    row "$section" "$name" "" "" "$(unless_done "$status")" "$(why "$name")"
    tests_failed=1
    return
  fi
  all=$(grep -c '"status": "RUN"' "$records/tests/$name.json")
  skipped=$(grep -c '"result": "SKIPPED"' "$records/tests/$name.json")
  passed=$(grep -c '^\[       OK \]' "$records/logs/$name.log")
  if ((all == 0)); then
    row "$section" "$name" "it ran no test" "" failed "its filter fits none"
    tests_failed=1
  elif ((status != 0 || passed + skipped != all)); then
    row "$section" "$name" "$passed of $all tests passed, $skipped skipped" "" failed \
      "$(grep '^\[  FAILED  \] .*ms)' "$records/logs/$name.log" | head -n 3 | sed 's/^\[  FAILED  \] //' | paste -sd ',' | cut -c1-200)"
    tests_failed=1
  elif ((skipped > passed)); then
    reason=$(grep -m 1 -A 1 'Skipped$' "$records/logs/$name.log" | tail -n 1 | cut -c1-160)
    row "$section" "$name" "$passed passed, $skipped skipped" "" skipped "$reason"
    # A card is here, and what it has to pass did not run. One card needs no NCCL.
    if ((!rehearse)) && [[ $reason != "NCCL was not found"* ]]; then tests_failed=1; fi
  else
    row "$section" "$name" "$passed passed, $skipped skipped" "" passed
  fi
}

# Fused convolutions compile for seconds each: a section of their own.
fused_tests=conformance.device_cuda.fused

section_tests() {
  local name program arguments
  while IFS=$'\t' read -r name program arguments; do
    [ "$name" = "$fused_tests" ] || test_row tests "$name" "$program" "$arguments"
  done < "$tests"
}

section_fused() {
  local name program arguments
  while IFS=$'\t' read -r name program arguments; do
    [ "$name" != "$fused_tests" ] || test_row fused "$name" "$program" "$arguments"
  done < "$tests"
  fused_training b32 "resnet50-cassava 300/b32 bf16" resnet50-cassava 32 80 "$mb_300"
  fused_training b400 "resnet50-imagenet 224/b400 bf16" resnet50-imagenet 400 50 "$mb_224" 7950
}

# fused_training NAME WHAT WORKLOAD BATCH STEPS MB [RECORD]: with --tune thorough (batch_norm's sums in
# convolutions, and convolutions that are compiled), beside the same without, and again with what was chosen.
fused_training() {
  local name=$1 what=$2 workload=$3 batch=$4 steps=$5 taken apart fused
  local -a sizes=("${@:6}")
  variant apart "" 60 && variant fused "thorough tuning" 240 --tune thorough &&
    variant fused-again "thorough tuning, again" 60 --tune thorough || return
  taken=$(grep -oE "; with sums |; gradient's sums " "$records/fused-again-$name.json" | wc -l)
  row fused "$what: kernels" "$taken taken, chosen in $(value compile_seconds "fused-$name") s, made again in $(value compile_seconds "fused-again-$name") s" \
    "$(calc "%.3f times as fast" "$(value p50 "apart-$name") / $(value p50 "fused-again-$name")")" passed
  apart=$(value train_loss "apart-$name") fused=$(value train_loss "fused-again-$name")
  if [ -n "$apart" ] && [ "$(calc "%d" "(${fused:-0} - $apart) ^ 2 < ($apart * 0.05) ^ 2")" = 1 ]; then
    row fused "$what: losses" "$fused, apart $apart" "" passed
  else
    row fused "$what: losses" "$fused, apart $apart" "" failed "they differ"
    tests_failed=1
  fi
}

# variant RUN LABEL SECONDS [OPTIONS...]: one run of fused_training, whose variables it reads.
variant() {
  local status run=$1 label=$2
  resnet "$run-$name" "$3" "$workload" "$batch" bf16 "$steps" "${@:4}"
  status=$?
  speed fused "$what${label:+, $label}" "$run-$name" "$status" "${sizes[@]}"
  return "$status"
}

# sanitize WHAT TOOL FILTER. Calls that libraries make and that fail are theirs, and so are their kernels.
sanitize() {
  local what=$1 tool=$2 filter=$3 status log
  log=$records/logs/$tool-$what.log
  limited 90 "$tool-$what" "$sanitizer" --target-processes all --tool "$tool" --report-api-errors no --error-exitcode 9 \
    --kernel-name kernel_substring=paceline \
    "$root/bin/test_conformance_cuda" --gtest_filter="$filter"
  status=$?
  # A filter that fits no test would find no error either.
  if ((status == 0)) && grep -qE '(ERROR|RACECHECK) SUMMARY: 0 ' "$log" && grep -q '^\[       OK \]' "$log"; then
    row sanitizer "$tool of our kernels, $what" "0 errors" "" passed
  else
    row sanitizer "$tool of our kernels, $what" "$(grep -oE '(ERROR|RACECHECK) SUMMARY.*' "$log" | head -n 1)" "" \
      "$(unless_done "$status")" "$(why "$tool-$what")"
  fi
}

section_sanitizer() {
  local sanitizer
  if ((rehearse)); then row sanitizer "our kernels" "" "" skipped "no kernels on device $device"; return; fi
  sanitizer=$(find_sanitizer)
  if [ -z "$sanitizer" ]; then row sanitizer "our kernels" "" "" skipped "compute-sanitizer is not here"; return; fi
  sanitize dense memcheck 'Card/*InfiniteGradient*:Card/*DenseLayers*'
  sanitize resnet memcheck 'Card/*TrainsTheSameBits*'
  sanitize dense racecheck 'Card/*DenseLayers*'
  sanitize resnet racecheck 'Card/*TrainsTheSameBits*'
}

# Which way to compute each convolution is measured when a network is first made, and kept.
section_choices() {
  local what name workload batch status before=0 after
  for what in "cassava 300/b32" "imagenet 224/b400" "cassava 300/b256"; do
    workload=resnet50-${what%% *} batch=${what##*b}
    name=choices-$batch
    resnet "$name" 150 "$workload" "$batch" bf16 2
    status=$?
    after=$(grep -c '"request"' "$XDG_CACHE_HOME/paceline/gpu-choices.json" 2> /dev/null)
    if ((status != 0)); then
      row choices "$what bf16" "" "" "$(unless_done "$status")" "$(why "$name")"
    else
      row choices "$what bf16" "$((${after:-0} - before)) choices kept, made in $(value compile_seconds "$name") s" "" passed
    fi
    before=${after:-0}
  done
  if [ -f "$XDG_CACHE_HOME/paceline/gpu-choices.json" ]; then choices_table > "$records/gpu-choices.tsv"; fi
}

# Slowest first: request, library, engine, microseconds, the runner-up's, usable of offered.
choices_table() {
  tr -d '\n' < "$XDG_CACHE_HOME/paceline/gpu-choices.json" | sed 's/"circumstances"/\n&/g' | awk '
    function field(key) { return match($0, "\"" key "\": *(\"[^\"]*\"|[^,}]*)") ? substr($0, RSTART, RLENGTH) : "" }
    function text(key, found) { found = field(key); sub("\"" key "\": *\"?", "", found); sub(/"$/, "", found); return found }
    /"request"/ { printf "%s\t%s\t%s\t%.1f\t%.1f\t%s of %s\n", text("request"), text("library"), text("engine"),
                  1e6 * text("seconds"), 1e6 * text("runner_up_seconds"), text("usable"), text("offered") }' |
    sort -t $'\t' -k 4,4 -g -r
}

# The same parameters after some steps: in a second run, with graphs of parts, and without graphs.
section_bits() {
  local what="deterministic: twice, in parts, without graphs" name status extra limit sums=()
  for name in bits-1 bits-2 bits-parts bits-no-graph; do
    extra=(--deterministic) limit=60
    if [ "$name" = bits-1 ]; then limit=150; fi  # it chooses
    if [ "$name" = bits-parts ] && ((${#graph_options[@]} == 0)); then extra+=(--no-step-graph); fi
    if [ "$name" = bits-no-graph ]; then extra+=(--no-graph); fi
    resnet "$name" "$limit" resnet50-cassava 32 bf16 10 "${extra[@]}"
    status=$?
    if ((status != 0)); then
      row bits "$what" "" "" "$(unless_done "$status")" "$(why "$name")"
      tests_failed=1
      return
    fi
    sums+=("$(grep -o '"parameter_checksum": *"[^"]*"' "$records/$name.json" | grep -o '[0-9a-fx]*"$' | tr -d '"')")
  done
  if [ -n "${sums[0]}" ] && [ "$(printf '%s\n' "${sums[@]}" | sort -u)" = "${sums[0]}" ]; then
    row bits "$what" "the same bits, ${sums[0]}" "" passed
  else
    row bits "$what" "${sums[*]}" "" failed "parameters differ"
    tests_failed=1
  fi
}

section_ours() {
  resnet b32-bf16 40 resnet50-cassava 32 bf16 80
  speed ours "resnet50-cassava 300/b32 bf16" b32-bf16 $? "$mb_300"
  if ((${#graph_options[@]} == 0)); then
    resnet b32-bf16-parts 40 resnet50-cassava 32 bf16 80 --no-step-graph
    speed ours "resnet50-cassava 300/b32 bf16, graphs of parts" b32-bf16-parts $? "$mb_300"
  fi
  resnet b32-bf16-no-graph 40 resnet50-cassava 32 bf16 80 --no-graph
  speed ours "resnet50-cassava 300/b32 bf16, no graph" b32-bf16-no-graph $? "$mb_300"
  resnet b256-bf16 60 resnet50-cassava 256 bf16 50
  speed ours "resnet50-cassava 300/b256 bf16" b256-bf16 $?
  resnet b400-bf16 60 resnet50-imagenet 400 bf16 50
  speed ours "resnet50-imagenet 224/b400 bf16" b400-bf16 $? "$mb_224" 7950
  mnist mnist-mlp
  mnist mnist-cnn
  if ((${#graph_options[@]} == 0 && !rehearse)); then mnist mnist-cnn --no-step-graph; fi
  accuracy
  resnet b32-tf32 150 resnet50-cassava 32 tf32 50
  speed ours "resnet50-cassava 300/b32 tf32" b32-tf32 $?
  resnet b32-fp32 150 resnet50-cassava 32 fp32 50
  speed ours "resnet50-cassava 300/b32 fp32" b32-fp32 $?
  resnet b400-bf16-no-graph 60 resnet50-imagenet 400 bf16 50 --no-graph
  speed ours "resnet50-imagenet 224/b400 bf16, no graph" b400-bf16-no-graph $? "$mb_224" 7950
}

# mnist WORKLOAD [ARGUMENT]
mnist() {
  local precision=tf32 steps=3000 name=$1${2:-}
  if ((rehearse)); then precision=$plain steps=2; fi
  train "$name" 30 "$@" --gpus 1 --backend self --precision "$precision" --batch-per-replica 64 --steps "$steps" --evaluate none
  speed ours "$1 b64 $precision${2:+, $2}" "$name" $?
}

# Seconds of training up to the end of the first epoch with 98 %.
accuracy() {
  local precision=tf32 few=() status seconds
  if ((rehearse)); then precision=$plain few=(--train-limit 640 --test-limit 100); fi
  train mnist-98 40 mnist-cnn --gpus 1 --backend self --precision "$precision" --batch-per-replica 64 --epochs 4 \
    --evaluate epoch ${few[@]+"${few[@]}"}
  status=$?
  if ((status != 0)); then
    row ours "mnist-cnn to 98 %" "" "" "$(unless_done "$status")" "$(why mnist-98)"
    return
  fi
  seconds=$(tr -d '\n ' < "$records/mnist-98.json" | awk '{
    match($0, /"epoch_seconds":\[[^]]*/); split(substr($0, RSTART + 17, RLENGTH - 17), epoch, ",")
    for (i = 1; match($0, /"test_accuracy":[0-9.]*/); ++i) {
      sum += epoch[i]
      if (substr($0, RSTART + 16, RLENGTH - 16) + 0 >= 0.98) { printf "%.3f", sum; exit }
      $0 = substr($0, RSTART + RLENGTH)
    } }')
  if [ -n "$seconds" ]; then
    row ours "mnist-cnn to 98 %" "$seconds s of training, choices before it $(value compile_seconds mnist-98) s" "" passed
  else
    row ours "mnist-cnn to 98 %" "not within 4 epochs" "" "$( ((rehearse)) && echo skipped || echo failed)" \
      "$( ((rehearse)) && echo "a rehearsal sees few samples")"
  fi
}

# Two replicas share the card through a backend that sums on the host, and give what one of twice the
# batch gives. Without it a group of GPUs is refused.
section_replicas() {
  local backend=ring what status one two
  what="2 replicas on one card through $backend"
  train replicas-1 40 mnist-cnn --precision "$plain" --gpus 1 --backend self --batch-per-replica 64 --steps 20 --evaluate none --cpus-per-task 1 &&
    train replicas-2 60 mnist-cnn --precision "$plain" --gpus 2 --backend "$backend" --batch-per-replica 32 --steps 20 --evaluate none --cpus-per-task 1
  status=$?
  if ((status != 0)); then
    row replicas "$what" "" "" "$(unless_done "$status")" "$(why replicas-2 2> /dev/null || why replicas-1)"
  else
    one=$(value train_loss replicas-1) two=$(value train_loss replicas-2)
    row replicas "$what" "loss $two, one replica's $one" "" \
      "$(calc "%s" "($one - $two) ^ 2 < ($one * 0.001) ^ 2 ? \"passed\" : \"failed\"")"
  fi
  if ((rehearse)); then row replicas "mirrored on one card is refused" "" "" skipped "CPUs may be shared"; return; fi
  if train replicas-mirrored 30 mnist-cnn --gpus 2 --backend mirrored --steps 2 --evaluate none; then
    row replicas "mirrored on one card is refused" "it was not" "" failed
  else
    row replicas "mirrored on one card is refused" "$(why replicas-mirrored)" "" passed
  fi
}

# peer NAME SECONDS NETWORK SIZE BATCH ARGUMENTS...
peer() {
  local name=$1 limit=$2 network=$3 size=$4 batch=$5
  shift 5
  local arguments=(--device cuda --precision bf16 --size "$size" --batch "$batch" --steps 50 --warmup 20 "$@")
  if ((rehearse)); then arguments=(--device cpu --size 32 --batch 2 --steps 1 --warmup 1); fi
  read -r -a network <<< "$network"
  TORCHINDUCTOR_COMPILE_THREADS=$(nproc) TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton \
    limited "$limit" "$name" "$python" "$share/sweeps/frameworks/torch_train.py" resnet50 "${network[@]}" "${arguments[@]}"
}

# against WHAT NAME OURS STATUS: the row of a peer's run, beside ours that ran last before it.
against() {
  local step batch ours
  if (($4 != 0)); then row peers "$1" "" "" "$(unless_done "$4")" "$(why "$2")"; return; fi
  step=$(value median_step_seconds "$2") batch=$(value batch_per_replica "$2") ours=$(value p50 "$3")
  row peers "$1" "$(calc "%.3f ms, %.0f samples/s" "1000 * $step, $batch / $step")" \
    "${ours:+$(calc "%.2f" "$step / $ours")}" passed
}

section_peers() {
  local cassava="--v1 --classes 5 --hidden 1016" imagenet="--classes 1000 --hidden 0" round
  if ! limited 120 peers-torch "$python" -c 'import torch; print(torch.__version__, "cuDNN", torch.backends.cudnn.version())'; then
    row peers "PyTorch" "" "" skipped "$python has no torch: $(why peers-torch)"
    return
  fi
  row peers "PyTorch" "$(why peers-torch)" "" passed
  for round in 1 2; do
    resnet "peers-ours-$round" 40 resnet50-cassava 32 bf16 80
    speed peers "ours 300/b32 bf16, round $round" "peers-ours-$round" $? "$mb_300"
    peer "peers-eager-$round" 60 "$cassava" 300 32
    against "PyTorch eager 300/b32 bf16, round $round" "peers-eager-$round" "peers-ours-$round" $?
    peer "peers-graph-$round" 60 "$cassava" 300 32 --graph
    against "PyTorch eager in a CUDA graph 300/b32, round $round" "peers-graph-$round" "peers-ours-$round" $?
  done
  resnet peers-ours-256 60 resnet50-cassava 256 bf16 50
  speed peers "ours 300/b256 bf16" peers-ours-256 $?
  peer peers-eager-256 60 "$cassava" 300 256
  against "PyTorch eager 300/b256 bf16" peers-eager-256 peers-ours-256 $?
  peer peers-compile 180 "$cassava" 300 32 --compile --graph
  against "PyTorch compiled, max-autotune, 300/b32 bf16" peers-compile peers-ours-2 $?
  resnet peers-ours-400 60 resnet50-imagenet 400 bf16 50
  speed peers "ours 224/b400 bf16" peers-ours-400 $? "$mb_224" 7950
  peer peers-eager-400 60 "$imagenet" 224 400
  against "PyTorch eager 224/b400 bf16" peers-eager-400 peers-ours-400 $?
  peer peers-compile-256 120 "$cassava" 300 256 --compile
  against "PyTorch compiled, default, 300/b256 bf16" peers-compile-256 peers-ours-256 $?
}

# The published study on one card: 15 epochs of 5,656 images, the first one from files.
section_study() {
  local precision status fit images=5656 arguments=(--epochs 15 --batch-per-replica 32) precisions=(bf16 tf32 fp32)
  if ((rehearse)); then images=4 arguments=(--epochs 1 --batch-per-replica 2) precisions=(fp32); fi
  if [ "$device" = reference ]; then
    row study "15 epochs of cassava" "" "" skipped "device reference is too slow for images of 300 x 300"
    return
  fi
  limited 90 study-data "$paceline" data make cassava --images "$images" --test 2 --out "$work/cassava" --quiet
  status=$?
  if ((status != 0)); then
    row study "synthetic JPEGs" "" "" "$(unless_done "$status")" "$(why study-data)"
    return
  fi
  for precision in "${precisions[@]}"; do
    train "study-$precision" 240 resnet50-cassava --data "$work/cassava" --weights none --gpus 1 --backend self \
      --precision "$precision" --evaluate none "${arguments[@]}"
    status=$?
    if ((status != 0)); then
      row study "$images synthetic JPEGs, $precision" "" "" "$(unless_done "$status")" "$(why "study-$precision")"
      continue
    fi
    fit=$(value fit_seconds "study-$precision")
    row study "$images synthetic JPEGs, $precision, no weights" \
      "$(calc "%.1f s, first epoch %.1f s, choices %.1f s" "$fit, $(value first_epoch_seconds "study-$precision"), $(value compile_seconds "study-$precision")")" \
      "$( ((rehearse)) || calc "%.1f times the published 562 s" "562 / $fit")" passed
  done
}
