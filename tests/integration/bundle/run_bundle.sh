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
if "$bundle/bin/paceline" list backends | grep -q '^gloo .*not built'; then ranks=(--gpus 1); else ranks=(--gpus 2 --backend gloo); fi
ends_with 0 "${carries[@]}" "$bundle/bin/paceline" train mnist-mlp --device $device --cpus-per-task 1 --steps 2 \
  --evaluate none "${ranks[@]}"

run=$bundle/gpu-run
ends_with 0 "${bare[@]}" "$run" --help
ends_with 64 "${bare[@]}" "$run" --mintues 3
ends_with 64 "${bare[@]}" "$run" --minutes soon
ends_with 64 "${bare[@]}" "$run" --only tests,speed
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
ends_with 0 "${bare[@]}" PACELINE_PYTHON="$scratch/no-python" "$run" --rehearse --out "$scratch/results" --minutes 4
summary=$scratch/results/summary.md
for section in machine tests choices bits ours replicas peers sanitizer fused study; do holds "$summary" "| $section | "; done
if failed=$(grep -F '| failed' "$summary"); then fail "failed: $failed"; fi
holds "$summary" "| ours | resnet50-cassava 300/b32 bf16 | "
holds "$summary" "no-python has no torch"
holds "$summary" "the same bits, "
count=$(find "$scratch/results" -type f | wc -l)
[ "$count" -le 8 ] || fail "$count files of results"
tar -tzf "$scratch/results/records.tar.gz" > "$scratch/archive"
for file in b32-bf16.json mnist-98.json replicas-2.json tests/gpu.device.json logs/doctor.log; do holds "$scratch/archive" "$file"; done
holds "$scratch/results/tests.json" '"gpu.device":'

# Results are not written over; what does not pass decides the exit code, and does not end the rest.
ends_with 64 "${bare[@]}" "$run" --rehearse --out "$scratch/results"
printf 'gpu.broken\tno_such_program\t\n' >> "$bundle/share/paceline/gpu-tests.tsv"
echo '{"request": "of an earlier call"}' > "$scratch/gpu-choices.json"
ends_with 1 "${bare[@]}" "$run" --rehearse --only tests,choices --choices "$scratch/gpu-choices.json" --out "$scratch/broken"
tar -xzOf "$scratch/broken/records.tar.gz" records/gpu-choices.json > "$scratch/kept"
holds "$scratch/kept" "of an earlier call"
holds "$scratch/broken/summary.md" "| tests | gpu.broken |  |  | failed: "
holds "$scratch/broken/summary.md" "| choices | "
