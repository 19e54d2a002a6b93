#!/usr/bin/env bash
# run_bundle.sh CMAKE BUILD: installs the bundle, moves it elsewhere, and uses it as a machine would that
# has nothing of ours; then rehearses tests/gpu/run, which lies in it.
set -euo pipefail

cmake=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bundle=$scratch/elsewhere
bare=(env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$scratch/home")
fail() { printf 'run_bundle.sh: %s\n' "$*" >&2; exit 1; }
holds() { grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "$1 does not hold \"$2\""; }; }
ends_with() {  # CODE COMMAND...: its output to $scratch/output
  local wanted=$1 code=0
  shift
  "$@" > "$scratch/output" 2>&1 || code=$?
  if [ "$code" != "$wanted" ]; then cat "$scratch/output" >&2; fail "$* ended with $code, not $wanted"; fi
}

"$cmake" --install "$build" --component bundle --prefix "$scratch/bundle" > "$scratch/install.log" 2>&1 ||
  { tail "$scratch/install.log" >&2; fail "it cannot be installed"; }
holds "$scratch/install.log" "The bundle is "
if git -C "$(dirname "$0")" ls-files > /dev/null 2>&1; then holds "$scratch/install.log" "With the files that git tracks: "; fi
mv "$scratch/bundle" "$bundle"
cd /

# Every library is inside, or one of the C library's own; none is CUDA's.
programs=("$bundle"/libexec/*)
[ ${#programs[@]} -ge 3 ] || fail "only ${#programs[@]} programs"
for program in "${programs[@]}"; do
  "${bare[@]}" ldd "$program" | grep -vE 'linux-vdso|ld-linux|=> [^ ]*/lib(c|m|dl|rt|pthread|resolv|util)\.so' > "$scratch/libraries"
  if outside=$(grep -vF "=> $bundle/" "$scratch/libraries"); then fail "$program needs what is not inside: $outside"; fi
  holds "$scratch/libraries" libstdc++.so
  [ -x "$bundle/bin/${program##*/}" ] || fail "nothing in bin starts $program"
done
if carried=$(find "$bundle/lib" | grep -E '/lib(cu(da|dnn|blas|pti)|nv|nccl)'); then fail "carries $carried"; fi

ends_with 0 "${bare[@]}" "$bundle/bin/paceline" --version
# As where the system's C library is too old, ranks that it starts itself included.
carries=("${bare[@]}" PACELINE_OWN_LIBC=1)
ends_with 0 "${carries[@]}" LD_DEBUG=libs "$bundle/bin/paceline" --version
holds "$scratch/output" "$bundle/lib/libc/libc.so.6"
"${bare[@]}" "$bundle/bin/paceline" doctor > "$scratch/doctor" || [ $? = 1 ] || fail "doctor ended by itself"
holds "$scratch/doctor" "resnet50-cassava"
device=cpu
if grep -q '^  cpu .*not built' "$scratch/doctor"; then device=reference; fi
ends_with 0 "${bare[@]}" "$bundle/bin/paceline" train mnist-mlp --device $device --cpus-per-task 1 --steps 2 \
  --evaluate none --record "$scratch/record.json"
holds "$scratch/record.json" '"completed"'
ends_with 0 "${carries[@]}" "$bundle/bin/paceline" train mnist-mlp --device $device --cpus-per-task 1 --steps 2 \
  --evaluate none --gpus 2 --backend ring

run=$bundle/gpu-run
ends_with 0 "${bare[@]}" "$run" --help
ends_with 64 "${bare[@]}" "$run" --mintues 3
ends_with 64 "${bare[@]}" "$run" --minutes soon
ends_with 64 "${bare[@]}" "$run" --only tests,speed
ends_with 64 "${bare[@]}" "$run" --call 5
ends_with 64 "${bare[@]}" "$run" --choices "$scratch/doctor"
if grep -qE '^  cuda  *(not|does not) ' "$scratch/doctor"; then
  ends_with 77 "${bare[@]}" "$run" --out "$scratch/none"
  holds "$scratch/output" "no GPU here: "
  [ ! -e "$scratch/none" ] || fail "left results without a GPU"
fi

# What does not start is told at once, with the loader's words.
mkdir "$scratch/torn"
cp -r "$bundle"/{gpu-run,bin,share,libexec} "$scratch/torn"
ends_with 65 "${carries[@]}" "$scratch/torn/gpu-run" --rehearse --out "$scratch/none"
holds "$scratch/output" "the program does not start here"
holds "$scratch/output" "ld-linux"
[ ! -e "$scratch/none" ] || fail "left results without a start"

# Every section leaves a row, none fails, and the archive holds the records.
ends_with 0 "${bare[@]}" PACELINE_PYTHON="$scratch/no-python" "$run" --rehearse --out "$scratch/results" --minutes 8
holds "$scratch/output" "  call 1:  9.5, smoke 0.5, machine 1.0, choices "
holds "$scratch/output" "  call 4:  9.0, study 3.0, sanitizer 6.0"
summary=$scratch/results/summary.md
for section in smoke machine choices ours launches bits peers profile tests replicas ranks study sanitizer; do holds "$summary" "| $section | "; done
if failed=$(grep -F '| failed' "$summary"); then fail "failed: $failed"; fi
holds "$summary" "| ours | resnet50-cassava 300/b32 bf16 | "
holds "$summary" "no-python has no torch"
holds "$summary" "the same bits, "
count=$(find "$scratch/results" -type f | wc -l)
[ "$count" -le 8 ] || fail "$count files of results"
tar -tzf "$scratch/results/records.tar.gz" > "$scratch/archive"
for file in b32-bf16.json mnist-98.json replicas-2.json tests/gpu.device.json logs/doctor.log; do holds "$scratch/archive" "$file"; done
holds "$scratch/results/tests.json" '"gpu.device":'

# What only a call of its own has: input at the card's rate.
ends_with 0 "${bare[@]}" PACELINE_PYTHON="$scratch/no-python" "$run" --rehearse --only data --out "$scratch/data" --minutes 4
if [ $device = cpu ]; then
  for what in "4 JPEGs decoded by " "224/b2 from JPEGs, cache off | " "224/b2 from JPEGs, cache decoded | "; do
    holds "$scratch/data/summary.md" "| data | $what"
  done
fi

# The program of tests/gpu/llm-c prints a line a step; without JAX a row says so.
if python=$(command -v python3); then
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "step $i/12 | 57.10 ms | 573000 tok/s"; done\n' > "$scratch/llm-c"
  chmod +x "$scratch/llm-c"
  ends_with 0 "${bare[@]}" PACELINE_PYTHON="$python" PACELINE_LLM_C="$scratch/llm-c" "$run" --rehearse --only others \
    --out "$scratch/others" --minutes 2
  holds "$scratch/others/summary.md" "| sustained | gpt, llm.c, round 2 | 57.10 ms"
  holds "$scratch/others/summary.md" "| JAX | "
fi

# Several replicas, a lost one among them; on the CPU they stand for cards.
ends_with 0 "${bare[@]}" "$run" --rehearse --several --out "$scratch/several" --minutes 4
for what in "2 cards through ring | loss " "2 cards through mirrored | loss " "a lost rank ends 2 through ring | exit code 71 " \
  "resnet50-imagenet 224/b128 bf16, each of 2 cards, graph | "; do
  holds "$scratch/several/summary.md" "| several | $what"
done

# A program that plays one with a card. What is missing is named at once; a way to compute that breaks the
# card's context is left out by the next run.
emulated=$scratch/emulated
mkdir -p "$emulated/bin" "$emulated/lib"
cp -r "$bundle/gpu-run" "$bundle/share" "$emulated"
sed -i 's/\.so\./-of-nobody.so./' "$emulated/share/paceline/gpu-libraries.tsv"  # this machine may have the real ones
cat > "$emulated/bin/paceline" << 'TEXT'
#!/bin/sh
here=$(dirname "$0")
case $1 in
  doctor)
    printf '{\n  "backends": {\n    "nccl": "NCCL %s (/lib/libnccl.so.2)"\n  },\n' "${NCCL:-2.28.9}"
    printf '  "devices": {\n    "cuda": "%s"\n  }\n}\n' "${STATE:-NVIDIA H200 at 0000:1b:00.0, driver for CUDA 13.0}" ;;
  train)
    while [ $# -gt 0 ]; do if [ "$1" = --record ]; then record=$2; fi; shift; done
    case $record in
      *choices-32*)
        if ! [ -e "$here/broken" ]; then
          touch "$here/broken"
          echo "error: cuDNN engine 7 broke the GPU's context: run it again: from now on it is left out"
          exit 70
        fi ;;
    esac
    echo '{"compile_seconds": 1.5, "train_loss": 0.5, "batch_per_replica": 400, "p50": 0.1, "bytes_per_second": 2e12}' > "$record" ;;
esac
TEXT
# An ncu: the end of a step, a whole one, and the beginning of the next.
cat > "$emulated/bin/ncu" << 'TEXT'
#!/bin/sh
while [ $# -gt 0 ]; do if [ "$1" = --log-file ]; then log=$2; fi; shift; done
entry="void paceline::cuda::<unnamed>::entry<paceline::cuda"
{
  echo "==PROF== Connected"
  echo '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
  id=0
  for kernel in "sm90_xmma(T1, T2)" "$entry::SoftmaxLoss>(T1)" "sm90_xmma(T1, T2)" "$entry::NormApply<float, 8>>(T1)" \
    "sm90_xmma(T1, T2)" "$entry::SoftmaxLoss>(T1)" "sm90_xmma(T1, T2)"; do
    for metric in '"dram__bytes_read.sum","byte","2,000,000"' '"dram__bytes_write.sum","byte","1,000,000"' \
      '"gpu__time_duration.sum","ns","1,500"' '"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed","%","40"'; do
      echo "\"$id\",\"$kernel\",$metric"
    done
    id=$((id + 1))
  done
} > "$log"
TEXT
chmod +x "$emulated/bin/paceline" "$emulated/bin/ncu"
echo '{"request": "of this card"}' > "$emulated/share/paceline/results/choices/NVIDIA-H200.json"
ends_with 65 "${bare[@]}" "$emulated/gpu-run" --only choices --out "$scratch/emulated-results"
holds "$scratch/output" "missing here: cuBLASLt of CUDA "
holds "$scratch/output" "cuDNN 9 for CUDA "
ends_with 77 "${bare[@]}" STATE="not here: no NVIDIA driver is loaded here" "$emulated/gpu-run" --only choices --out "$scratch/emulated-results"
holds "$scratch/output" "no GPU here: no NVIDIA driver is loaded here; missing, too: cuBLASLt"
cut -f 1 "$emulated/share/paceline/gpu-libraries.tsv" | grep -E 'cublasLt|cudnn' | while read -r file; do touch "$emulated/lib/$file"; done
ends_with 65 "${bare[@]}" STATE="does not serve here: cuDNN is too old" "$emulated/gpu-run" --only choices --out "$scratch/emulated-results"
holds "$scratch/output" "cuDNN is too old"
ends_with 0 "${bare[@]}" PACELINE_PYTHON="$scratch/no-python" "$emulated/gpu-run" --only choices,peers --out "$scratch/emulated-results"
holds "$scratch/output" "not here: NVRTC of CUDA "
holds "$scratch/output" "torch of "
holds "$scratch/emulated-results/summary.md" "| machine | left out, as it broke the card's context | error: cuDNN engine 7 broke"
holds "$scratch/emulated-results/summary.md" "| choices | cassava 300/b32 bf16 | 0 choices kept, made in 1.5 s |"
holds "$scratch/emulated-results/summary.md" "| choices | from NVIDIA-H200.json | 1 choices |"
ends_with 0 "${bare[@]}" PATH="$emulated/bin:$PATH" "$emulated/gpu-run" --only ours,launches,profile,ranks --minutes 2 --out "$scratch/emulated-card"
summary=$scratch/emulated-card/summary.md
holds "$summary" "224/b400 bf16 | 100.000 ms, 4000 samples/s | 33 % of memory's bound, 46 % of 8716/s measured before, 50 % of 7950/s by MLPerf |"
holds "$summary" "a step | 4 launches, 6.0 us, 12.0 MB, tensor cores 40.0 % | 100.0 % of the time, 2.00 TB/s |"
holds "$summary" "| sm90_xmma | 2 | 3.0 | 50.0 | 6.0 | 40.0 |"
holds "$summary" "| NormApply<float, 8> | 1 | 1.5 | "
holds "$summary" "| ranks | 2 ranks of NCCL on one card |  |  | skipped: it takes NCCL 2.30.3, and 2.28.9 was found |"
ends_with 0 "${bare[@]}" NCCL=2.31.0 "$emulated/gpu-run" --only ranks --minutes 1 --out "$scratch/emulated-ranks"
holds "$scratch/emulated-ranks/summary.md" "| 2 ranks of NCCL on one card, sums in graphs of steps | loss 0.5, one replica's 0.5 |"

# Results are not written over; what does not pass decides the exit code, and does not end the rest.
ends_with 64 "${bare[@]}" "$run" --rehearse --out "$scratch/results"
printf 'gpu.broken\tno_such_program\t\n' >> "$bundle/share/paceline/gpu-tests.tsv"
echo '{"request": "of an earlier call"}' > "$scratch/gpu-choices.json"
ends_with 1 "${bare[@]}" "$run" --rehearse --only tests,choices --choices "$scratch/gpu-choices.json" --out "$scratch/broken"
tar -xzOf "$scratch/broken/records.tar.gz" records/gpu-choices.json > "$scratch/kept"
holds "$scratch/kept" "of an earlier call"
holds "$scratch/broken/summary.md" "| tests | gpu.broken |  |  | failed: "
holds "$scratch/broken/summary.md" "| choices | "
