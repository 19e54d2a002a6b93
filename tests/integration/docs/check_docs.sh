#!/usr/bin/env bash
# Links of the Markdown pages lead to files, and the types that docs/architecture.md names are in the sources.
#   check_docs.sh SOURCE_FOLDER
# shellcheck disable=SC2016  # backquotes of Markdown
set -euo pipefail
cd "${1:?source folder}"
folders=(.github analysis cli data docs engine packaging results run slurm sweeps tests workloads)
mapfile -t pages < <(ls ./*.md; find "${folders[@]}" -name '*.md')
wrong=0
say() { printf '%s\n' "$1"; wrong=$((wrong + 1)); }

# "[text](path#anchor)" without those of the web, of the page itself, and in blocks of code.
links=0
for page in "${pages[@]}"; do
  while IFS= read -r link; do
    links=$((links + 1))
    target=$(dirname "$page")/${link%%#*}
    if [ ! -e "$target" ]; then say "${page#./}: no such file: $link"; fi
  done < <(awk '/^ *```/ { code = !code; next } !code && !/^    /' "$page" | { grep -oE '\]\([^) ]+\)' || true; } |
    sed -E 's/^\]\(//; s/\)$//' | { grep -vE '^([a-z]+:|#)' || true; })
done
if [ "$links" -lt 100 ]; then say "only $links links were found"; fi

# `UpperCamel`, also of "`Row`s".
types=0
while IFS= read -r type; do
  types=$((types + 1))
  if ! grep -rqE "^(struct|class|enum class|using) $type\b" --include=*.h analysis engine results run slurm sweeps workloads; then
    say "docs/architecture.md: no header has a type $type"
  fi
done < <(grep -oE '`[A-Z][A-Za-z]*[a-z][A-Za-z]*`' docs/architecture.md | tr -d '\140' | sort -u)
if [ "$types" -lt 30 ]; then say "only $types types were found in docs/architecture.md"; fi

printf '%d pages, %d links, %d types: %d wrong\n' "${#pages[@]}" "$links" "$types" "$wrong"
[ "$wrong" = 0 ]
