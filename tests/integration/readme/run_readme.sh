#!/usr/bin/env bash
# Runs every command of the README's "sh runnable" blocks, in order, in an empty folder, with
# `paceline` found in PATH as the first argument's folder has it.
#   run_readme.sh BIN_FOLDER SOURCE_FOLDER
set -euo pipefail
bin=$(readlink -f "$1")
source=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ln -s "$source/sweeps" "$source/results" "$source/slurm" .
export PATH=$bin:$PATH
count=0
while IFS= read -r line; do
  if [ -z "$line" ]; then continue; fi
  printf '+ %s\n' "$line"
  if ! bash -c "$line" > log 2>&1; then
    cat log
    echo "this command of the README failed: $line"
    exit 1
  fi
  count=$((count + 1))
done < <(awk '/^```sh runnable$/ {on = 1; next} /^```/ {on = 0} on' "$source/README.md")
echo "$count commands of the README ran"
if [ "$count" -lt 10 ]; then
  echo "expected at least 10"
  exit 1
fi
