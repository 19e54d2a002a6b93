// What was asked of Slurm for a study, and what it is to do: STUDY/slurm/journal.jsonl, a line an
// event, only ever appended to (but for a line that was cut off), and
// STUDY/slurm/SESSION/ARRAY.json, written once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "results/parameters.h"
#include "slurm/job_array.h"

namespace paceline {

// A run as the elements of an array know it: enough to tell its record without the spec.
struct Element {
  std::string study, workload;
  std::string point, point_folder;
  Point parameters;  // as given
  int repeat = 1;
  std::string identity, data_hash;  // of the record that makes it done; empty: not known
};

struct SentArray {
  std::string session, name, shape;  // "1 node, 2 tasks of 4 CPUs"
  std::int64_t job = 0;              // 0: none is known
  int minutes = 0;
  bool called = false;  // sbatch was, for it; without a job it is not known what came of that
  bool refused = false;
  bool later = false;  // not sent: the site takes no more at a time
  std::vector<Element> elements;
};

class Journal {
 public:
  // Reads what is there; a last line that was cut off is left out. Throws input naming file and
  // line for anything else that is no event, and for a file without any line.
  explicit Journal(std::filesystem::path study);

  const std::vector<SentArray>& arrays() const { return arrays_; }
  std::vector<std::int64_t> jobs() const;  // of all arrays that Slurm took
  bool empty() const { return arrays_.empty(); }

  // Each is on disk when it returns. Call with the study locked. Throws input where that fails.
  void begin(const std::string& session, const std::string& spec, const std::string& site);
  void planned(const std::string& session, const JobArray& array,
               const std::vector<Element>& elements);
  void later(const std::string& session, const JobArray& array,
             const std::vector<Element>& elements);
  void sending(const std::string& session, const std::string& array);  // sbatch comes next
  void sent(const std::string& session, const std::string& array, std::int64_t job);
  void refused(const std::string& session, const std::string& array, const std::string& why);
  void cancelled(const std::vector<std::int64_t>& jobs);

 private:
  void describe(const std::string& event, const std::string& session, const JobArray& array,
                const std::vector<Element>& elements);
  void append(const Json& event);
  void apply(const Json& event);
  SentArray* find(const std::string& session, const std::string& array);

  std::filesystem::path study_, file_;
  std::vector<SentArray> arrays_;
};

// For a study that nothing was ever submitted of: throws input.
void need_submissions(const Journal& journal, const std::filesystem::path& study);

}  // namespace paceline
