// Files of a study, of a site and of Slurm, from whoever made them.
#include "results/archive/study_archive.h"
#include "slurm/commands.h"
#include "slurm/journal.h"
#include "slurm/script.h"
#include "sweeps/program.h"
#include "tests/fuzz/parts.h"
#include "tests/unit/slurm/samples.h"

namespace paceline {
namespace {

using Parts = std::vector<std::string_view>;

FuzzFolder& folder() {
  static FuzzFolder made;
  std::filesystem::create_directories(made.path() / "slurm/S");
  return made;
}

void read_an_archive(std::string_view text, const Parts&) {
  folder().write("a.tar.gz", text);
  read_archive(folder().path() / "a.tar.gz");
}

void read_journal(std::string_view, const Parts& parts) {
  folder().fill({"slurm/journal.jsonl", "slurm/S/a.json"}, parts);
  const Journal journal(folder().path());
}

void read_plan(std::string_view text, const Parts&) {
  parse_expected_runs("plan.json", text);
}

void read_points(std::string_view text, const Parts&) {
  folder().write("points", text);
  words_of_element(folder().path() / "points", 0);
}

// A profile, and the names of a study that stand in its scripts.
void write_script(std::string_view, const Parts& parts) {
  const Site site = parse_site("site.json", parts[0]);
  const StudyPlan plan = make_plan(parse_spec("s.json", kFourPoints));
  ScriptSetup setup = make_setup(plan);
  if (parts.size() > 1) setup.study = parts[1];
  if (parts.size() > 2) setup.folder = std::filesystem::path("/r") / parts[2];
  for (const JobArray& array : make_submission(plan, site).arrays) script_text(site, array, setup);
  collect_script_text(site, setup);
}

void read_answers(std::string_view text, const Parts&) {
  parse_squeue(text);
  parse_sacct(text);
  parse_job_lines(text);
  for (const std::string& word : split(text, '\n')) parse_array_id(word);
}

void fill_command(std::string_view, const Parts& parts) {
  plain_words(std::string(parts[0]));
  const std::string value(parts.back());
  fill_shell_command(parts[0], [&](const std::string&) { return value; });
}

constexpr FuzzReader kReaders[] = {{"archive", read_an_archive}, {"journal", read_journal},
                                   {"plan", read_plan},          {"points", read_points},
                                   {"script", write_script},     {"slurm", read_answers},
                                   {"shell", fill_command}};

}  // namespace
}  // namespace paceline

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  paceline::run_reader(paceline::kReaders, data, size);
  return 0;
}
