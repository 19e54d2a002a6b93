// What ranks and their launcher leave behind, from a folder that others can write to: the judgement
// must come to an end, in one line.
#include <cstdlib>

#include "engine/core/error.h"
#include "engine/failure/verdict.h"
#include "tests/fuzz/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static paceline::FuzzFolder folder;
  const auto parts = paceline::split_path(data, size);
  folder.fill({"0.json", "1.json"}, parts);
  const auto statuses = paceline::read_statuses(folder.path());
  paceline::LauncherWords words;
  if (parts.size() > 2) words.errors = parts[2];
  if (parts.size() > 3) words.output = parts[3];
  paceline::Watch launcher;
  launcher.end.exit_code = 1;
  const paceline::RunVerdict verdict = paceline::judge(2, statuses, launcher, words);
  if (verdict.line.find('\n') != std::string::npos) std::abort();
  return 0;
}
