#!/usr/bin/env bash
# Runs every "sh runnable" block of the pages (by default the README and those of docs/), in order, in one folder that
# is empty at first, with `paceline` found in PATH as the first argument's folder has it.
#   run_readme.sh BIN_FOLDER SOURCE_FOLDER [PAGE...]
set -euo pipefail
bin=$(readlink -f "$1")
source=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
pages=("${@:3}")
cd "$source"
if [ ${#pages[@]} = 0 ]; then pages=(README.md docs/*.md); fi
cd "$folder"
ln -s "$source/sweeps" "$source/results" "$source/slurm" .
export PATH=$bin:$PATH
blocks=0
for page in "${pages[@]/#/$source/}"; do
  # Each block as a NUL-terminated text.
  while IFS= read -r -d '' block; do
    printf '+ %s: %s\n' "${page#"$source"/}" "$block"
    if ! bash -euo pipefail -c "$block" > log 2>&1; then
      cat log
      echo "this block of ${page#"$source"/} failed: $block"
      exit 1
    fi
    blocks=$((blocks + 1))
  done < <(awk '/^```sh runnable$/ {on = 1; next} on && /^```/ {on = 0; printf "%c", 0; next} on' "$page")
done
echo "$blocks blocks ran"
if [ "$blocks" -lt 3 ]; then
  echo "expected at least 3"
  exit 1
fi
