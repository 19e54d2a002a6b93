#!/usr/bin/env bash
# run_quickstart.sh SOURCE: quickstart with a CMake and a GPU that are played.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { printf 'run_quickstart.sh: %s\n' "$*" >&2; cat "$scratch/out" >&2; exit 1; }

mkdir -p "$scratch"/{packaging,bin,build/generated,build/bin}
cp "$1/quickstart" "$scratch"
{ grep $'\tgpu: ' "$1/packaging/dependencies.tsv"; printf 'bash\t-\tbash\tbash\tshell\tcommand:bash\n'; } > "$scratch/packaging/dependencies.tsv"
printf '#!/bin/sh\n' > "$scratch/bin/cmake"
printf '#!/bin/sh\ncat "%s/cards"\n' "$scratch" > "$scratch/bin/nvidia-smi"
chmod +x "$scratch"/bin/*
names() { printf '"devices": [\n{"name": "cuda", "built": %s, "reason": "%s", "about": "a GPU"}]\n' "$@" > "$scratch/build/generated/names.json"; }
run() { PATH=$scratch/bin:$PATH PACELINE_BUILD=$scratch/build "$scratch/quickstart" build > "$scratch/out" 2>&1 || fail "it ended with $?"; }

echo "GPU 0: NVIDIA A100 (UUID: GPU-1)" > "$scratch/cards"
names false "the CUDA Toolkit was not found when this was built (nvcc)"
run
grep -q 'this machine has an NVIDIA GPU' "$scratch/out" || fail "a GPU without CUDA goes unsaid"
grep -q 'cuda: the CUDA Toolkit was not found' "$scratch/out" || fail "no reason"
for package in nvidia-cuda-toolkit nvidia-cudnn libnccl-dev; do grep -q "^  $package " "$scratch/out" || fail "no $package"; done
grep -q 'nothing is missing' "$scratch/out" || fail "a build without GPU lacks nothing"

names true ""
run
if grep -q NVIDIA "$scratch/out"; then fail "a build with CUDA lacks nothing"; fi
if ! compgen -G '/dev/nvidia[0-9]*' > /dev/null; then
  echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver." > "$scratch/cards"
  names false "the CUDA Toolkit was not found when this was built (nvcc)"
  run
  if grep -q NVIDIA "$scratch/out"; then fail "there is no GPU"; fi
fi
