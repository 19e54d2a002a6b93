#!/usr/bin/env bash
# tests/skipped against a log of ctest's, and how programs of tests end.  skipped_test.sh SOURCE_FOLDER PROGRAM...
set -euo pipefail
skipped=$1/tests/skipped
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/Testing/Temporary"
log=$folder/Testing/Temporary/LastTest.log

fail() { echo "failed: $1"; exit 1; }

if "$skipped" "$folder" 2> /dev/null; then fail "no log, but no error"; fi
printf '[       OK ] A.B (1 ms)\n' > "$log"
"$skipped" "$folder" | grep -qx 'no test case was skipped' || fail "nothing skipped"

cat > "$log" << 'LOG'
[ RUN      ] Card.Adds
card_test.cpp:9: Skipped
no GPU here

[  SKIPPED ] Card.Adds (0 ms)
card_test.cpp:9: Skipped
no GPU here

[  SKIPPED ] Card.Multiplies (0 ms)
disk_test.cpp:4: Skipped
no right to make a mount namespace: Operation not permitted

[  SKIPPED ] Disk.Full (12 ms)
[  SKIPPED ] 3 tests, listed below:
[  SKIPPED ] Card.Adds
LOG
"$skipped" "$folder" > "$folder/out"
grep -qx '3 test cases were skipped, for 2 reasons:' "$folder/out" || fail "$(cat "$folder/out")"
grep -qx ' *2  no GPU here' "$folder/out" || fail "$(cat "$folder/out")"

echo '^no GPU' > "$folder/allowed"
if "$skipped" "$folder" --only "$folder/allowed" > /dev/null 2> "$folder/err"; then fail "a skip that must fail"; fi
grep -q 'mount namespace' "$folder/err" || fail "$(cat "$folder/err")"
echo '^no right' >> "$folder/allowed"
"$skipped" "$folder" --only "$folder/allowed" > /dev/null || fail "all reasons are allowed"

# A test counts as skipped by its exit code alone: a failure beside a skipped case is a failure.
ends_with() {
  local code=0
  "${program[@]}" "--gtest_filter=$2" > "$folder/out" 2>&1 || code=$?
  [ "$code" = "$1" ] || fail "$2 ended with $code, not $1: $(cat "$folder/out")"
}
program=("${@:2}")
ends_with 77 Case.Skips
ends_with 0 Case.Passes
ends_with 0 Case.Skips:Case.Passes
ends_with 1 Case.Skips:Case.Fails
ends_with 1 '*'
ends_with 64 No.Such
if grep -rn SKIP_REGULAR_EXPRESSION "$1"/{cmake,tests} --include=CMakeLists.txt --include='*.cmake'; then fail "a skip by a pattern"; fi
