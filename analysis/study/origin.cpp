#include "analysis/study/origin.h"

#include "engine/core/text.h"

namespace paceline {

namespace {

std::string describe_gpu(const RunRecord& record) {
  if (record.gpus.empty()) return "";
  const GpuFacts& first = record.gpus.front();
  return first.name + (first.driver.empty() ? "" : ", driver " + first.driver);
}

std::string join_pair(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : ", ") + b;
}

// "train of 3f9a12cd3f9a (dirty)"
std::string describe_program(const std::optional<ProgramFacts>& program) {
  if (!program) return "";
  if (program->commit.empty()) return program->name;
  return program->name + " of commit " + program->commit.substr(0, 12) +
         (program->dirty.value_or(false) ? " (dirty)" : "");
}

}  // namespace

const std::vector<std::string>& origin_names() {
  static const std::vector<std::string> names = {
      "source",   "system",  "machine", "GPU",       "hosts", "cluster", "modules",     "build",
      "compiler", "library", "backend", "transport", "data",  "weights", "own program", "packages"};
  return names;
}

std::vector<std::pair<std::string, std::string>> summarize_provenance(const RunRecord& record) {
  const Provenance& made = record.provenance;
  const Allocation given = made.allocation.value_or(Allocation{});
  const std::pair<const char*, std::string> all[] = {
      {"source", made.source},
      {"system", join_pair(made.stack, made.hardware)},
      {"machine", made.cpu_model},
      {"GPU", describe_gpu(record)},
      {"hosts", record.hosts()},
      {"cluster", join_pair(given.cluster, given.partition)},
      {"modules", given.modules},
      {"build", record.build()},
      {"compiler", join_pair(made.compiler, std::string(trim(made.compiler_flags)))},
      {"library", made.libraries},
      {"backend", made.backend_asked},
      {"transport", made.backend_used},
      {"data", join_pair(made.data_set, made.data_hash.empty() ? "" : "hash " + made.data_hash)},
      {"weights", made.weights_hash},
      {"own program", describe_program(made.program)},
      {"packages", made.program ? made.program->packages : ""}};
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [name, text] : all) {
    if (!text.empty()) found.emplace_back(name, text);
  }
  return found;
}

}  // namespace paceline
