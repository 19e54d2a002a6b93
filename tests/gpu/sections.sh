# shellcheck shell=bash disable=SC2154,SC2034  # what these use and set is run's, which sources them
# What is asked of a card: a function a section, what is worth most first. Each leaves rows, and ends
# nothing but itself.

# Of ResNet-50 v1 with images of 300 x 300 and batch 32, and v1.5 of 224 x 224 and batch 400, in bf16: MB that an image has
# to move, with batch normalisation in two passes and the first pooling inside; and images/s of this card that
# docs/gpu.md predicts, and that NVIDIA published (MLPerf training, 8 cards, of one). [gpt]: tokens/s of GPT-2.
declare -A mb=([300]=600 [224]=329) expected=() published=()
expected_by=predicted
case $card in
  *"H100 80GB HBM3"*) expected=([300]=2800 [224]=5300 [gpt]=390000) published=([224]=7172) ;;
  *H200*) expected=([300]=3466 [224]=8716 [gpt]=581000) published=([224]=7950) expected_by="measured before" ;;
esac

# speed SECTION WHAT NAME STATUS [SIZE]: the row of a training; of ResNet-50 with images of SIZE beside what the
# card's memory allows, and beside what is expected and published for a card of this name.
speed() {
  local section=$1 what=$2 name=$3 status=$4 size=${5:-0} step batch memory ratio="" rate
  if ((status != 0)); then
    row "$section" "$what" "" "" "$(unless_done "$status")" "$(why "$name")"
    return
  fi
  step=$(value p50 "$name") batch=$(value batch_per_replica "$name")
  if [ -z "$step" ]; then
    row "$section" "$what" "" "" failed "the record has no steps"
    return
  fi
  if ((size && !rehearse)); then
    memory=$(value bytes_per_second "$name")
    if [ -n "$memory" ]; then
      ratio=$(calc ", %.0f %% of memory's bound" "$memory ? 100 * ${mb[$size]} * 1e6 * $batch / $step / (2 * $memory) : 0")  # a copy is counted once
    fi
    for rate in ${expected[$size]:+"${expected[$size]} $expected_by"} ${published[$size]:+"${published[$size]} by MLPerf"}; do
      ratio+=$(calc ", %.0f %% of ${rate/ //s }" "100 * $batch / $step / ${rate%% *}")
    done
  fi
  row "$section" "$what" "$(calc "%.3f ms, %.0f samples/s" "1000 * $step, $batch / $step")" "${ratio#, }" passed
}

section_machine() {
  local name=""
  limited 15 nvidia-smi nvidia-smi -q
  limited 15 nvidia-smi-query nvidia-smi --format=csv \
    --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit,mig.mode.current,pci.bus_id
  limited 15 versions bash -c 'uname -srm; ldd --version | head -n 1; nvcc --version; gcc --version | head -n 1; true'
  {
    "$paceline" --version
    echo
    if ((rehearse)); then echo "device: $device"; else tail -n 1 "$records/logs/nvidia-smi-query.log"; fi
    echo
    echo "libraries of CUDA: ${PACELINE_CUDA_LIBS:-none found}"
  } > "$work/head.md"
  name=$(doctor_says devices "$device")
  if [[ $name == does\ not\ * ]]; then
    row machine "what device $device is" "" "" failed "$name"
  else
    row machine "what device $device is" "$name" "" passed
  fi
}

# shards COUNT NAME PROGRAM ARGUMENTS...: a program of GoogleTest's in as many processes, their logs and reports put
# together. A list of the reports: one in which a shard is missing is left out.
shards() {
  local count=$1 name=$2 program=$3 status=0 shard pids=() good=() bad=() reports=()
  shift 3
  for ((shard = 0; shard < count; ++shard)); do
    GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$shard limited 200 "$name-$shard" "$root/bin/$program" "$@" \
      --gtest_output="json:$work/$name-$shard.json" &
    pids+=($!)
  done
  for shard in "${!pids[@]}"; do
    wait "${pids[$shard]}"
    case $? in
      0 | 77) good+=("$records/logs/$name-$shard.log") ;;
      *) status=$? bad+=("$records/logs/$name-$shard.log") ;;
    esac
    if [ -s "$work/$name-$shard.json" ]; then reports+=("$work/$name-$shard.json"); fi
  done
  cat ${good[@]+"${good[@]}"} ${bad[@]+"${bad[@]}"} > "$records/logs/$name.log"
  rm ${good[@]+"${good[@]}"} ${bad[@]+"${bad[@]}"}
  if ((${#reports[@]} == count)); then
    { echo "["; sed -s '$s/$/,/' "${reports[@]}" | sed '$s/,$//'; echo "]"; } > "$records/tests/$name.json"
  fi
  return "$status"
}

# run_tests SECTION COUNT: the programs of rows "NAME, PROGRAM, ARGUMENTS" on stdin, side by side, in COUNT processes each;
# one after another on a card that serves one process at a time.
run_tests() {
  local section=$1 count=$2 one_by_one=0 names=() pids=() name program arguments list
  if grep -q 'Compute Mode *: Exclusive' < <(timeout 10 nvidia-smi -q 2> /dev/null); then one_by_one=1 count=1; fi
  while IFS=$'\t' read -r name program list; do
    IFS=$'\t' read -r -a arguments <<< "$list"
    shards "$count" "$name" "$program" ${arguments[@]+"${arguments[@]}"} &
    pids+=($!) names+=("$name")
    if ((one_by_one)); then wait; fi
  done
  for name in "${!names[@]}"; do
    wait "${pids[$name]}"
    test_row "$section" "${names[$name]}" $?
  done
}

# test_row SECTION NAME STATUS: what shards left of a program.
test_row() {
  local section=$1 name=$2 status=$3 passed skipped all reason
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

side_by_side=$(($(nproc) < 8 ? 2 : 4))

# Whether anything is right at all: training on the card, dense layers, a step that fp16 skips, zeroed memory.
section_smoke() {
  run_tests smoke 1 << TEXT
smoke.cuda	test_conformance_cuda	--gtest_filter=Card/*TrainsTheSameBits*:Card/*DenseLayers*:Card/*Infinite*
smoke.memory	test_conformance_device_cuda_memory
TEXT
}

section_tests() { run_tests tests "$side_by_side" < "$tests"; }

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
  sanitizer=$(find_tool compute-sanitizer)
  if [ -z "$sanitizer" ]; then row sanitizer "our kernels" "" "" skipped "compute-sanitizer is not here"; return; fi
  sanitize dense memcheck 'Card/*InfiniteGradient*:Card/*DenseLayers*'
  sanitize resnet memcheck 'Card/*TrainsTheSameBits*'
  sanitize dense racecheck 'Card/*DenseLayers*'
  sanitize resnet racecheck 'Card/*TrainsTheSameBits*'
}

# Which way to compute each convolution is measured when a network is first made, and kept.
section_choices() {
  local what name workload batch status before after
  before=$(grep -c '"request"' "$XDG_CACHE_HOME/paceline/gpu-choices.json" 2> /dev/null)
  if [ -n "$choices" ]; then row choices "from ${choices##*/}" "$before choices" "" passed; fi
  for what in "imagenet 224/b400" "cassava 300/b32"; do
    workload=resnet50-${what%% *} batch=${what##*b}
    name=choices-$batch
    resnet "$name" 150 "$workload" "$batch" bf16 2
    status=$?
    after=$(grep -c '"request"' "$XDG_CACHE_HOME/paceline/gpu-choices.json" 2> /dev/null)
    if ((status != 0)); then
      row choices "$what bf16" "" "" "$(unless_done "$status")" "$(why "$name")"
    else
      row choices "$what bf16" "$((${after:-0} - ${before:-0})) choices kept, made in $(value compile_seconds "$name") s" "" passed
    fi
    before=${after:-0}
  done
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
  ours 60 imagenet 224 400 bf16 50
  ours 40 cassava 300 32 bf16 80
  mnist mnist-mlp
  mnist mnist-cnn
  accuracy
  gpt gpt 32 60
}

# What one graph a step saves, and what the other precisions cost.
section_launches() {
  if ((${#graph_options[@]} == 0 && !rehearse)); then
    ours 40 cassava 300 32 bf16 80 --no-step-graph
    mnist mnist-cnn --no-step-graph
    ours 60 imagenet 224 400 bf16 50 --no-step-graph
  fi
  ours 40 cassava 300 32 bf16 80 --no-graph
  ours 60 imagenet 224 400 bf16 50 --no-graph
  ours 150 cassava 300 32 tf32 50
  ours 150 cassava 300 32 fp32 50
  ours 150 cassava 300 256 bf16 50
}

# ours SECONDS DATA SIZE BATCH PRECISION STEPS [ARGUMENT]: bounds and rates are of 16 bits and the batches that `mb` names.
ours() {
  local option=${7:-} size=$3
  local name=b$4-$5${option#-}
  if [ "$5" != bf16 ] || [ "$4" = 256 ]; then size=0; fi
  resnet "$name" "$1" "resnet50-$2" "$4" "$5" "$6" ${option:+"$option"}
  speed "$section" "resnet50-$2 $3/b$4 $5${option:+, $option}" "$name" $? "$size"
}

# mnist WORKLOAD [ARGUMENT]
mnist() {
  local precision=tf32 steps=3000 name=$1${2:-}
  if ((rehearse)); then precision=$plain steps=2; fi
  train "$name" 30 "$@" --gpus 1 --backend self --precision "$precision" --batch-per-replica 64 --steps "$steps" --evaluate none
  speed "$section" "$1 b64 $precision${2:+, $2}" "$name" $?
}

# gpt NAME BATCH SECONDS: GPT-2 of 124 million parameters.
gpt() {
  local name=$1 workload=gpt2-124m batch=$2 context=1024 precision=bf16 steps=20 what step status rate ratio=""
  if ((rehearse)); then workload=gpt-tiny batch=2 context=64 precision=$plain steps=2; fi
  what="$workload b$batch x $context $precision"
  train "$name" "$3" "$workload" --gpus 1 --backend self --precision "$precision" --input synthetic --evaluate none \
    --batch-per-replica "$batch" --context-length "$context" --steps "$steps"
  status=$?
  if ((status != 0)); then row "$section" "$what" "" "" "$(unless_done "$status")" "$(why "$name")"; return; fi
  step=$(value p50 "$name")
  if [ -z "$step" ]; then row "$section" "$what" "" "" failed "the record has no steps"; return; fi
  rate=$(calc "%.0f" "$batch * $context / $step")
  if [ -n "${expected[gpt]:-}" ] && ((!rehearse)); then
    ratio=$(calc "%.0f %% of ${expected[gpt]}/s $expected_by" "100 * $rate / ${expected[gpt]}")
  fi
  row "$section" "$what" "$(calc "%.3f ms, $rate tokens/s" "1000 * $step")" "$ratio" passed
}

# Seconds of training up to the end of the first epoch with 98 %.
accuracy() {
  local precision=tf32 few=() status seconds
  if ((rehearse)); then precision=$plain few=(--train-limit 640 --test-limit 100); fi
  train mnist-98 40 mnist-cnn --gpus 1 --backend self --precision "$precision" --batch-per-replica 64 --epochs 4 \
    --evaluate epoch ${few[@]+"${few[@]}"}
  status=$?
  if ((status != 0)); then
    row "$section" "mnist-cnn to 98 %" "" "" "$(unless_done "$status")" "$(why mnist-98)"
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
    row "$section" "mnist-cnn to 98 %" "$seconds s of training, choices before it $(value compile_seconds mnist-98) s" "" passed
  else
    row "$section" "mnist-cnn to 98 %" "not within 4 epochs" "" "$( ((rehearse)) && echo skipped || echo failed)" \
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

# profile_table CSV MARKER: kernel, launches, us, % of the time, MB of DRAM, % of tensor cores; all of a step first, then the
# slowest. A step is what lies between two launches of MARKER, which a step launches once. Fields of ncu's CSV are all in quotes,
# and names have commas.
profile_table() {
  grep '^"' "$1" | awk -F '","' -v marker="$2" '
    { sub(/^"/, "", $1); sub(/"$/, "", $NF) }
    NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
    {
      id = $column["ID"] + 0; kernel = $column["Kernel Name"]
      if (!sub(/.*entry</, "", kernel)) sub(/^void /, "", kernel)
      sub(/>?\(.*/, "", kernel); gsub(/paceline::(cuda::)?/, "", kernel)
      if ((kernel == marker || index(kernel, marker "<") == 1) && id != last) { ++steps; last = id }
      if (steps == 1) name[id] = substr(kernel, 1, 90)
      metric = $column["Metric Name"]; value = $column["Metric Value"]; gsub(/,/, "", value)
      if (steps == 1) of[id, substr(metric, 1, 4)] += value
    }
    function print_line(key) {
      printf "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\n", key, count[key], time[key] / 1e3, 100 * time[key] / time["all"],
        bytes[key] / 1e6, tensor[key] / time[key]
    }
    function add(key) {
      ++count[key]; time[key] += of[id, "gpu_"]; bytes[key] += of[id, "dram"]
      tensor[key] += of[id, "gpu_"] * of[id, "sm__"]
    }
    END {
      if (steps < 2) exit
      for (id in name) { add(name[id]); add("all") }
      for (key in count) if (time[key] > 0) print_line(key)
    }' | sort -t $'\t' -k 3,3 -g -r
}

# What each kernel of a step takes, moves and computes. After SKIP launches, LAUNCHES hold a whole step.
section_profile() {
  profile gpt "gpt2-124m b32 x 1024 bf16" Embed 1000 1700 gpt2-124m --batch-per-replica 32 --context-length 1024
  profile resnet "resnet50-imagenet 224/b400 bf16" SoftmaxLoss 1300 1000 resnet50-imagenet --batch-per-replica 400 --weights none
}

# GPT-2 alone, which takes least.
section_kernels() {
  profile gpt "gpt2-124m b32 x 1024 bf16" Embed 1000 1700 gpt2-124m --batch-per-replica 32 --context-length 1024
}

# profile NAME WHAT MARKER SKIP LAUNCHES ARGUMENTS...
profile() {
  local name=$1 what="$2, no graph" marker=$3 skip=$4 count=$5 ncu kernel launches us share moved tensor
  local metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed
  if ((rehearse)); then row profile "$what" "" "" skipped "no kernels on device $device"; return; fi
  ncu=$(find_tool ncu)
  if [ -z "$ncu" ]; then row profile "$what" "" "" skipped "ncu is not here"; return; fi
  local arguments=("${@:6}" "${replicas[@]}" --input synthetic --evaluate none --precision bf16 --no-graph)
  # What chooses would be counted as a step.
  train "profile-choices-$name" 120 "${arguments[@]}" --steps 2
  limited 110 "profile-$name" "$ncu" --clock-control none --cache-control none --target-processes all --csv --print-units base \
    --log-file "$records/ncu-$name.csv" --launch-skip "$skip" --launch-count "$count" --metrics "$metrics" \
    "$paceline" train "${arguments[@]}" --device "$device" --steps 10 --quiet
  if [ -s "$records/ncu-$name.csv" ]; then profile_table "$records/ncu-$name.csv" "$marker" > "$records/profile-$name.tsv"; fi
  if ! [ -s "$records/profile-$name.tsv" ]; then
    cat "$records/ncu-$name.csv" >> "$records/logs/profile-$name.log" 2> /dev/null
    row profile "$what" "" "" "$(grep -q ERR_NVGPUCTRPERM "$records/logs/profile-$name.log" && echo skipped || echo failed)" \
      "$(grep -m 1 ERROR "$records/logs/profile-$name.log" || why "profile-$name")"
    return
  fi
  while IFS=$'\t' read -r kernel launches us share moved tensor; do
    row profile "$what: ${kernel/#all/a step}" "$launches launches, $us us, $moved MB, tensor cores $tensor %" \
      "$share % of the time, $(calc "%.2f TB/s" "$moved / $us")" passed
  done < <(head -n 2 "$records/profile-$name.tsv")
}

# run_torch SECONDS NAME PROGRAM ARGUMENTS...: what it compiles is kept for this call only.
run_torch() {
  TORCHINDUCTOR_COMPILE_THREADS=$(nproc) TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton \
    limited "$1" "$2" "$python" "$share/sweeps/frameworks/$3" "${@:4}"
}

# peer WHAT OURS NAME SECONDS NETWORK SIZE BATCH ARGUMENTS...: PyTorch's run, beside ours that ran last before it.
peer() {
  local what=$1 ours=$2 name=$3 limit=$4 network size=$6 batch=$7 status step
  read -r -a network <<< "$5"
  shift 7
  local arguments=(--device cuda --precision bf16 --size "$size" --batch "$batch" --steps 50 --warmup 20 "$@")
  if ((rehearse)); then arguments=(--device cpu --size 32 --batch 2 --steps 1 --warmup 1); fi
  run_torch "$limit" "$name" "torch_train.py" resnet50 "${network[@]}" "${arguments[@]}"
  status=$?
  if ((status != 0)); then row peers "PyTorch $what" "" "" "$(unless_done "$status")" "$(why "$name")"; return; fi
  step=$(value median_step_seconds "$name") batch=$(value batch_per_replica "$name") ours=$(value p50 "$ours")
  row peers "PyTorch $what" "$(calc "%.3f ms, %.0f samples/s" "1000 * $step, $batch / $step")" \
    "${ours:+$(calc "%.2f" "$step / $ours")}" passed
}

# peer_gpt WHAT OURS NAME SECONDS BATCH ARGUMENTS...: PyTorch's GPT-2, beside ours of that batch.
peer_gpt() {
  local what=$1 ours=$2 name=$3 limit=$4 batch=$5 status rate step
  local arguments=(--model gpt2-124m --device cuda --precision bf16 --batch "$batch" --steps 20 --warmup 5 "${@:6}")
  if ((rehearse)); then arguments=(--model gpt-tiny --batch 2 --context 64 --steps 1 --warmup 1); fi
  run_torch "$limit" "$name" "torch_gpt.py" "${arguments[@]}"
  status=$?
  if ((status != 0)); then row peers "PyTorch $what" "" "" "$(unless_done "$status")" "$(why "$name")"; return; fi
  rate=$(value tokens_per_second "$name") step=$(value p50 "$ours")
  row peers "PyTorch $what" "$(calc "%.0f tokens/s" "$rate")" \
    "$( ((rehearse)) || [ -z "$step" ] || calc "%.2f" "$batch * 1024 / $step / $rate")" passed
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
    speed peers "ours 300/b32 bf16, round $round" "peers-ours-$round" $? 300
    peer "eager 300/b32 bf16, round $round" "peers-ours-$round" "peers-eager-$round" 60 "$cassava" 300 32
    peer "eager in a CUDA graph 300/b32, round $round" "peers-ours-$round" "peers-graph-$round" 60 "$cassava" 300 32 --graph
    resnet "peers-ours-400-$round" 60 resnet50-imagenet 400 bf16 50
    speed peers "ours 224/b400 bf16, round $round" "peers-ours-400-$round" $? 224
    peer "eager 224/b400 bf16, round $round" "peers-ours-400-$round" "peers-eager-400-$round" 60 "$imagenet" 224 400
    gpt "peers-gpt-$round" 32 60
    peer_gpt "eager gpt2-124m b32, round $round" "peers-gpt-$round" "peers-gpt-eager-$round" 60 32
    if [ "$round" = 1 ]; then  # what takes a minute to compile
      peer_gpt "compiled gpt2-124m b32" peers-gpt-1 peers-gpt-compiled 120 32 --compile
      peer "compiled, reduce-overhead, 300/b32 bf16" peers-ours-1 peers-reduce 120 "$cassava" 300 32 --compile --reduce-overhead
    fi
  done
  resnet peers-ours-256 60 resnet50-cassava 256 bf16 50
  speed peers "ours 300/b256 bf16" peers-ours-256 $?
  peer "eager 300/b256 bf16" peers-ours-256 peers-eager-256 60 "$cassava" 300 256
  peer "compiled, default, 300/b256 bf16" peers-ours-256 peers-compile-256 120 "$cassava" 300 256 --compile
  peer "compiled, max-autotune, 300/b32 bf16" peers-ours-1 peers-autotune 300 "$cassava" 300 32 --compile --graph
}

# watched NAME COMMAND...: clocks and watts beside it.
watched() {
  local status watch
  timeout 200 nvidia-smi --format=csv,noheader,nounits --loop-ms=500 \
    --query-gpu=utilization.gpu,clocks.sm,power.draw,clocks_throttle_reasons.sw_power_cap \
    > "$records/watts-$1.csv" 2> /dev/null &
  watch=$!
  "${@:2}"
  status=$?
  kill "$watch" 2> /dev/null
  return "$status"
}

# watts_text NAME SECONDS: of the samples of a busy card; SECONDS a step.
watts_text() {
  awk -F ', *' -v step="$2" '$1 > 50 { ++n; mhz += $2; watts += $3; capped += $4 ~ /^Active/ }
    END { if (n) printf ", %.0f MHz, %.0f W, at the cap %.0f %%, %.1f J a step", mhz / n, watts / n, 100 * capped / n, watts / n * step }' \
    "$records/watts-$1.csv"
}

# run_llm_c SECONDS NAME: GPT-2 by the program of tests/gpu/llm-c, on random tokens, recomputing nothing. It prints a
# line a step, whose median is put behind its log.
run_llm_c() {
  local status step log=$records/logs/$2.log
  limited 30 "$2" "$python" -c 'import array, random, sys
count = 8 * 32768 + 1
with open(sys.argv[1], "wb") as file:
    array.array("i", [20240520, 1, count] + [0] * 253).tofile(file)
    array.array("H", (random.randrange(50257) for _ in range(count))).tofile(file)' "$work/tokens.bin" || return
  limited "$1" "$2" "$PACELINE_LLM_C" -i "$work/tokens.bin" -j "$work/tokens.bin" -e d12 -b 32 -t 1024 -d 32768 \
    -x 200 -l 0.0006 -v 1000 -m 1 -s 0 -r 0
  status=$?
  step=$(grep -oE '[0-9.]+ ms \|' "$log" | tail -n +11 | sort -n |
    awk '{ all[NR] = $1 } END { if (NR) printf "%.6f", all[int((NR + 1) / 2)] / 1000 }')
  if [ -n "$step" ]; then echo "\"median_step_seconds\": $step" >> "$log"; fi
  return "$status"
}

# sustain NETWORK SIDE ROUND: 200 steps, at the clocks that the card holds.
sustain() {
  local what=$1 side=$2 name=sustained-$1-$2-$3 paceline=$paceline status step batch=400 ours ratio=""
  if [ "$side" = older ]; then paceline=$PACELINE_OLDER; fi
  case $what-$side in
    gpt-compiled)
      local arguments=(--model gpt2-124m --device cuda --precision bf16 --batch 32 --steps 200 --warmup 10 --compile)
      if ((rehearse)); then arguments=(--model gpt-tiny --batch 2 --context 64 --steps 1 --warmup 1); fi
      watched "$name" run_torch 110 "$name" torch_gpt.py "${arguments[@]}" ;;
    gpt-llm.c) watched "$name" run_llm_c 90 "$name" ;;
    gpt-*)
      local network=(gpt2-124m --precision bf16 --batch-per-replica 32 --context-length 1024 --steps 200)
      if ((rehearse)); then network=(gpt-tiny --precision "$plain" --batch-per-replica 2 --context-length 64 --steps 2); fi
      watched "$name" train "$name" 50 "${network[@]}" "${replicas[@]}" --input synthetic --evaluate none ;;
    images-compiled)
      local arguments=(--classes 1000 --hidden 0 --device cuda --precision bf16 --size 224 --batch 400 --steps 200 --warmup 20 --compile)
      if ((rehearse)); then arguments=(--classes 1000 --hidden 0 --device cpu --size 32 --batch 2 --steps 1 --warmup 1); fi
      watched "$name" run_torch 110 "$name" torch_train.py resnet50 "${arguments[@]}" ;;
    images-jax)
      local arguments=(resnet50 --classes 1000 --hidden 0 --precision bf16 --size 224 --batch 400 --steps 200 --warmup 20 --block 10)
      if ((rehearse)); then arguments=(mnist-mlp --batch 2 --steps 1 --warmup 1); fi
      XLA_PYTHON_CLIENT_PREALLOCATE=false watched "$name" limited 150 "$name" "$python" \
        "$share/jax_train.py" "${arguments[@]}" ;;
    images-*) watched "$name" resnet "$name" 50 resnet50-imagenet 400 bf16 200 ;;
  esac
  status=$?
  if ((status != 0)); then row sustained "$what, $side, round $3" "" "" "$(unless_done "$status")" "$(why "$name")"; return; fi
  if [ "$what" = gpt ]; then batch=$((32 * 1024)); fi
  step=$(value p50 "$name")
  if [ -z "$step" ]; then step=$(value median_step_seconds "$name"); fi
  if [ -z "$step" ]; then step=$(calc "%.6f" "$batch / $(value tokens_per_second "$name")"); fi
  ours=$(value p50 "sustained-$what-ours-$3")
  if [ "$side" != ours ] && [ -n "$ours" ]; then ratio=$(calc "%.3f" "$step / $ours"); fi
  row sustained "$what, $side, round $3" \
    "$(calc "%.2f ms, %.0f/s" "1000 * $step, $batch / $step")$(watts_text "$name" "$step")" "$ratio" passed
}

# In turns: whoever runs second finds a hotter card.
section_sustained() {
  local sides=(ours compiled) what round side
  if [ -x "${PACELINE_OLDER:-}" ]; then sides+=(older); fi
  if ! limited 60 sustained-torch "$python" -c 'import torch; print(torch.__version__)'; then
    row sustained "PyTorch compiled" "" "" skipped "$python has no torch: $(why sustained-torch)"
    sides=("${sides[@]/compiled/}")
  fi
  for what in gpt images; do
    for round in 1 2; do
      for side in "${sides[@]}"; do
        if [ -n "$side" ]; then sustain "$what" "$side" "$round"; fi
      done
    done
  done
}

# GPT-2 by llm.c, and ResNet-50 by JAX, in turns with ours.
section_others() {
  local round has_jax=1
  if ! limited 60 others-jax "$python" -c 'import jax; print(jax.__version__)'; then
    has_jax=0
    row others "JAX" "" "" skipped "$python has no jax: $(why others-jax)"
  fi
  if [ ! -x "${PACELINE_LLM_C:-}" ]; then
    row others "llm.c" "" "" skipped "PACELINE_LLM_C names no program; tests/gpu/llm-c builds it"
  fi
  for round in 1 2; do
    if [ -x "${PACELINE_LLM_C:-}" ]; then
      sustain gpt ours "$round"
      sustain gpt llm.c "$round"
    fi
    if ((has_jax)); then
      sustain images ours "$round"
      sustain images jax "$round"
    fi
  done
}

# A step as one graph against graphs of its parts, in turns.
section_graphs() {
  local round one parts
  for round in 1 2; do
    resnet "graphs-one-$round" 25 resnet50-imagenet 400 bf16 60
    resnet "graphs-parts-$round" 25 resnet50-imagenet 400 bf16 60 --no-step-graph
    one=$(value p50 "graphs-one-$round") parts=$(value p50 "graphs-parts-$round")
    if [ -z "$one" ] || [ -z "$parts" ]; then
      row graphs "224/b400, round $round" "" "" failed "$(why "graphs-$([ -z "$one" ] && echo one || echo parts)-$round")"
      continue
    fi
    row graphs "224/b400, round $round: one graph, its parts" \
      "$(calc "%.2f ms, %.2f ms" "1000 * $one, 1000 * $parts")" "$(calc "%.3f" "$parts / $one")" passed
  done
}

# Two ranks of Gloo on one card: torchvision's ResNet-50, or a small network without it.
why_program() {
  cat << 'PYTHON'
import sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
device, batch, size, wait = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
try:
    from torchvision.models import resnet50
    network = resnet50()
except ImportError:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 7, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                  torch.nn.Flatten(), torch.nn.Linear(64, 1000))
class Images(Dataset):
    def __len__(self):
        return 600 * batch
    def __getitem__(self, i):
        time.sleep(wait / batch)
        return torch.zeros(3, size, size), i % 1000
dist.init_process_group("gloo")
model = DistributedDataParallel(network.to(device))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for images, labels in DataLoader(Images(), batch, num_workers=2, pin_memory=device == "cuda"):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    loss.backward()
    optimizer.step()
PYTHON
}

# What `paceline why` says of a slow and of a fast loader, and what its hook takes.
section_why() {
  local name wait device=cuda batch=64 size=224 verdict first status folder=$work/why
  if ((rehearse)); then device=cpu batch=4 size=32; fi
  mkdir -p "$folder"
  why_program > "$folder/train.py"
  for name in slow fast; do
    wait=$([ "$name" = slow ] && echo 0.6 || echo 0)
    verdict=$records/why-$name.json
    # shellcheck disable=SC2016
    (cd "$folder" && limited 280 "why-$name" sh -c 'verdict=$1; shift; "$@" > "$verdict"' sh "$verdict" "$paceline" why --json \
      --minutes 4 -- "$python" -m torch.distributed.run --nproc-per-node 2 train.py "$device" "$batch" "$size" "$wait")
    status=$?
    first=$(sed -n 's/^ *"first_cause": "\(.*\)",$/\1/p' "$verdict" 2> /dev/null)
    if [ -z "$(value rounds "why-$name")" ]; then
      row why "a $name loader" "" "" "$(unless_done "$status")" "$(why "why-$name")"
    elif { [ "$name" = slow ] && [ "$first" != data ]; } || { [ "$name" = fast ] && [ "$first" = data ]; }; then
      row why "a $name loader" "first cause: ${first:-none}" "" failed "the loader is $name"
    else
      row why "a $name loader" "first cause: ${first:-none}, $(value rounds "why-$name") rounds" "" passed
    fi
    if [ -n "$(value overhead "why-$name")" ]; then
      row why "its hook" "$(calc "%.3f %% of the time" "100 * $(value overhead "why-$name")")" "" passed
    fi
  done
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

# torchvision's decoder on the device, which on a card is nvJPEG: of the records of a TFDS folder.
nvjpeg_program() {
  cat << 'PYTHON'
import glob, struct, sys, time, torch, torchvision
folder, device, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
images = []
for path in sorted(glob.glob(folder + "/*-train.tfrecord-*")):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        record = data[at + 12:at + 12 + struct.unpack_from("<Q", data, at)[0]]
        at += len(record) + 16
        jpeg = record[record.index(b"\xff\xd8\xff"):record.rindex(b"\xff\xd9") + 2]
        images.append(torch.frombuffer(bytearray(jpeg), dtype=torch.uint8))
def decode(some):
    torchvision.io.decode_jpeg(some, mode=torchvision.io.ImageReadMode.RGB, device=device)
    if device == "cuda":
        torch.cuda.synchronize()
decode(images[:batch])
start = time.perf_counter()
for i in range(0, len(images), batch):
    decode(images[i:i + batch])
print('{"images_per_second": %.1f}' % (len(images) / (time.perf_counter() - start)))
PYTHON
}

# ResNet-50 at 224 from JPEGs at the card's rate: what the CPUs decode, what a step waits for, and what the card's own decoder
# would give.
section_data() {
  local images=16000 batch=400 precision=bf16 on=cuda threads folder=$work/photographs rate cache status
  if ((rehearse)); then images=4 batch=2 precision=$plain on=cpu; fi
  if [ "$device" = reference ]; then
    row data "ResNet-50 from JPEGs" "" "" skipped "device reference is too slow for images of 224 x 224"
    return
  fi
  threads=$(($(nproc) > 1 ? $(nproc) - 1 : 1))
  limited 60 data-made "$paceline" data make cassava --images "$images" --test 2 --size-min 375 --size-max 600 --out "$folder" --quiet
  status=$?
  if ((status != 0)); then row data "synthetic JPEGs" "" "" "$(unless_done "$status")" "$(why data-made)"; return; fi
  limited 60 data-decoded "$paceline" bench input --data "$folder" --size 224x224 --batch "$batch" --input-threads "$threads" \
    --cache off --epochs 1 --json
  status=$?
  rate=$(sed -n '/"epochs"/,$s/.*"images_per_second": \([0-9.]*\).*/\1/p' "$records/logs/data-decoded.log" | head -n 1)
  if [ -z "$rate" ]; then row data "decoding" "" "" "$(unless_done "$status")" "$(why data-decoded)"; return; fi
  row data "$images JPEGs decoded by $threads threads" "$(calc "%.0f images/s" "$rate")" "" passed
  for cache in off decoded; do
    train "data-$cache" 90 resnet50-imagenet --input data --data "$folder" "${replicas[@]}" --weights none --evaluate none \
      --precision "$precision" --batch-per-replica "$batch" --epochs 3 --cache "$cache"
    status=$?
    if ((status != 0)); then
      row data "224/b$batch, cache $cache" "" "" "$(unless_done "$status")" "$(why "data-$cache")"
      continue
    fi
    row data "224/b$batch from JPEGs, cache $cache" \
      "$(calc "%.0f samples/s" "$(value samples_per_second "data-$cache")")" \
      "$(calc "%.0f %% of a step waits for input" "100 * $(value input "data-$cache") / $(value step "data-$cache")")" passed
  done
  nvjpeg_program > "$work/nvjpeg.py"
  limited 60 data-nvjpeg "$python" "$work/nvjpeg.py" "$folder" "$on" "$batch"
  status=$?
  rate=$(value images_per_second data-nvjpeg)
  if [ -z "$rate" ]; then row data "nvJPEG by torchvision" "" "" skipped "$(why data-nvjpeg)"; return; fi
  row data "nvJPEG by torchvision, without a resize" "$(calc "%.0f images/s" "$rate")" "" passed
}
