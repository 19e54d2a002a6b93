// The submissions of a study: STUDY/slurm/journal.jsonl has one line per event and is append-only
// (except for a truncated last line); STUDY/slurm/SESSION/ARRAY.json is written once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/json.h"
#include "results/parameters.h"
#include "slurm/job_array.h"

namespace paceline {

// A run as an array element: enough to recognise its record without the spec.
struct Element {
  std::string study, workload;
  std::string point, point_folder;
  Point parameters;  // as given in the spec
  int repeat = 1;
  std::string identity, data_hash;  // of the record that will complete it; empty: unknown
};

struct SentArray {
  std::string session, name, shape;  // "1 node, 2 tasks of 4 CPUs"
  std::int64_t job = 0;              // 0: unknown
  int minutes = 0;
  bool called = false;  // sbatch was called; without a job id its outcome is unknown
  bool refused = false;
  bool later = false;  // not submitted: the site's limit was reached
  std::vector<Element> elements;
};

class Journal {
 public:
  // Reads the journal, ignoring a truncated last line. Throws input naming file and line for other
  // invalid lines and for an empty file.
  explicit Journal(std::filesystem::path study);

  const std::vector<SentArray>& arrays() const { return arrays_; }
  std::vector<std::int64_t> jobs() const;  // of all arrays that Slurm accepted
  bool empty() const { return arrays_.empty(); }

  // Each event is on disk when the call returns. Requires the study lock. Throws input if the write
  // fails.
  void begin(const std::string& session, const std::string& spec, const std::string& site);
  void planned(const std::string& session, const JobArray& array,
               const std::vector<Element>& elements, bool later = false);
  void sending(const std::string& session, const std::string& array);  // call before sbatch
  void sent(const std::string& session, const std::string& array, std::int64_t job);
  void refused(const std::string& session, const std::string& array, const std::string& why);
  void cancelled(const std::vector<std::int64_t>& jobs);

 private:
  void append(const Json& event);
  void apply(const Json& event);
  SentArray* find(const std::string& session, const std::string& array);

  std::filesystem::path study_, file_;
  std::vector<SentArray> arrays_;
};

// Throws input if nothing was ever submitted for the study.
void need_submissions(const Journal& journal, const std::filesystem::path& study);

}  // namespace paceline
