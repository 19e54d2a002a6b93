#!/usr/bin/env bash
# tests/skipped against a log of ctest's.  skipped_test.sh SOURCE_FOLDER
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
