#!/usr/bin/env bash
# run_install.sh CMAKE BUILD SOURCE: installs Paceline, moves it, and asks each shipped study for its plan in an empty
# folder: every file that it starts is there.
set -euo pipefail

cmake=$1 build=$2 source=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/elsewhere
fail() { printf 'run_install.sh: %s\n' "$*" >&2; exit 1; }

"$cmake" --install "$build" --prefix "$scratch/prefix" > "$scratch/install.log" 2>&1 ||
  { tail "$scratch/install.log" >&2; fail "it cannot be installed"; }
mv "$scratch/prefix" "$prefix"
mkdir "$scratch/empty"
cd "$scratch/empty"
paceline=(env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$scratch/home" COLUMNS=200 "$prefix/bin/paceline")
share=$prefix/share/paceline

count=0
for spec in "$source"/sweeps/*.json; do
  name=$(basename "$spec" .json)
  # The sources, which the program knows where it was built, are not to stand in for what is installed.
  [ -f "$share/sweeps/$name.json" ] || fail "$name.json is not installed"
  "${paceline[@]}" sweep "$name" --dry-run > "$scratch/plan" 2>&1 ||
    { cat "$scratch/plan" >&2; fail "sweep $name --dry-run ended with $?"; }
  if absent=$(grep 'not here: .* starts in' "$scratch/plan"); then fail "sweep $name: $absent"; fi
  count=$((count + 1))
done
[ "$count" -ge 15 ] || fail "only $count studies"

# Whatever else stands beside them, as executable as it is there.
while IFS= read -r file; do
  [ -f "$share/sweeps/$file" ] || fail "sweeps/$file is not installed"
  if [ -x "$source/sweeps/$file" ]; then [ -x "$share/sweeps/$file" ] || fail "sweeps/$file cannot be started"; fi
done < <(cd "$source/sweeps" && find . -type f ! -name '*.cpp' ! -name '*.h' ! -name '*.md' ! -name CMakeLists.txt ! -path '*/__pycache__/*')

# A plan says what is not there.
mv "$share/sweeps/frameworks/torch_gpt.py" "$scratch"
"${paceline[@]}" sweep frameworks-gpt2 --dry-run > "$scratch/plan" 2>&1 || fail "a plan without its script ended with $?"
grep -q 'not here: frameworks/torch_gpt.py, which program ' "$scratch/plan" || { cat "$scratch/plan" >&2; fail "a missing script is not named"; }

# A page for each command whose help the tests have, but those of an engine that is not in this build.
while IFS= read -r page; do
  read -r -a words <<< "${page//-/ }"
  if "${paceline[@]}" "${words[@]:1}" --help | grep -q 'not in this build'; then continue; fi
  [ -s "$prefix/share/man/man1/$page.1.gz" ] || fail "no page $page.1.gz"
done < <(cd "$source/tests/integration/cli/help" && printf '%s\n' *.txt | grep -v -e --help | sed 's/\.txt$//; s/_/-/g; /^paceline$/!s/^/paceline-/')
for file in bash-completion/completions/paceline zsh/site-functions/_paceline fish/vendor_completions.d/paceline.fish \
  paceline/schemas/spec.schema.json paceline/schemas/site.schema.json paceline/schemas/record.schema.json \
  paceline/schemas/configuration.schema.json; do
  [ -s "$prefix/share/$file" ] || fail "$file is not installed"
done
for file in "$source"/slurm/sites/*.json; do
  [ -s "$share/slurm/sites/${file##*/}" ] || fail "site profile ${file##*/} is not installed"
done
[ -s "$prefix/share/doc/paceline/copyright" ] || fail "no licence"
"$source/packaging/release" check || fail "number and date of the version differ"
grep -q '"name": "libdnnl-dev"' "$prefix/share/doc/paceline/paceline.spdx.json" || fail "no bill of materials"
if command -v python3 > /dev/null; then python3 -m json.tool "$prefix/share/doc/paceline/paceline.spdx.json" > "$scratch/sbom"; fi
