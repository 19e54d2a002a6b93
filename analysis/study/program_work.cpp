#include "analysis/study/program_work.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "engine/core/text.h"

namespace paceline {

namespace {

struct WorkFact {
  const char* name;
  std::string (*text)(const Run&);  // empty: not reported
  bool of_time = false;             // matters only to runs without a rate
};

std::string whole(const std::optional<double>& number, const char* unit) {
  return number ? fmt::format("{} {}", std::llround(*number), unit) : "";
}

const std::array kFacts = {
    WorkFact{"parameters",
             [](const Run& run) {
               const auto& count = run.record->plan.parameter_count;
               return count ? fmt::format("{} parameters", *count) : "";
             }},
    WorkFact{"precision",
             [](const Run& run) {
               const auto& program = run.record->provenance.program;
               return program ? program->precision : "";
             }},
    WorkFact{"global batch",
             [](const Run& run) { return whole(run.record->plan.global_batch, "samples a step"); }},
    WorkFact{"samples", [](const Run& run) { return whole(run.samples, "samples"); }, true},
};

bool matters(const WorkFact& fact, const Row& row) {
  return !fact.of_time || !row.first().rate_is_given;
}

std::string program_of(const Row& row) {
  return row.first().by_program ? row.first().parameters.text("program").value_or("") : "";
}

// All of a point but the program, and the tasks that it divides its replicas into.
std::string place_of(const Row& row) {
  const Run& run = row.first();
  Point point = run.parameters;
  for (const Parameter& parameter : parameters()) {
    const bool is_of_program = parameter.need == Requirement::own_program;
    const bool is_of_work = parameter.role != Role::layout && parameter.role != Role::replication &&
                            parameter.role != Role::none;
    if (is_of_program || !is_of_work) point.erase(parameter.name);
  }
  return fmt::format("{};{};{};{}", run.system, run.gpus, run.nodes.value_or(1), point.text());
}

// Rows of several programs at one point.
std::vector<std::vector<Row*>> contests(std::vector<Row>& rows) {
  std::map<std::string, std::vector<Row*>> by_place;
  for (Row& row : rows) {
    if (!program_of(row).empty()) by_place[place_of(row)].push_back(&row);
  }
  std::vector<std::vector<Row*>> result;
  for (auto& [place, members] : by_place) {
    std::set<std::string> programs;
    for (const Row* row : members) programs.insert(program_of(*row));
    if (programs.size() > 1) result.push_back(std::move(members));
  }
  return result;
}

}  // namespace

void compare_work(std::vector<Row>& rows) {
  for (const std::vector<Row*>& contest : contests(rows)) {
    for (const WorkFact& fact : kFacts) {
      std::set<std::string> values;
      for (const Row* row : contest) {
        if (matters(fact, *row)) values.insert(fact.text(row->first()));
      }
      values.erase("");
      if (values.size() < 2) continue;
      for (Row* row : contest) {
        const std::string value = fact.text(row->first());
        if (value.empty() || !matters(fact, *row)) continue;
        row->work += (row->work.empty() ? "unequal work: " : ", ") + value;
      }
    }
  }
}

std::vector<std::string> work_notes(const std::vector<Row>& rows) {
  std::vector<Row> copy = rows;
  std::map<std::string, std::set<std::string>> silent;  // fact, programs
  std::set<std::string> told;
  bool several = false, unequal = false;
  for (const std::vector<Row*>& contest : contests(copy)) {
    several = true;
    for (const Row* row : contest) {
      unequal = unequal || !row->work.empty();
      for (const WorkFact& fact : kFacts) {
        if (!matters(fact, *row)) continue;
        told.insert(fact.name);
        if (fact.text(row->first()).empty()) silent[fact.name].insert(program_of(*row));
      }
    }
  }
  if (!several) return {};
  std::vector<std::string> compared, notes;
  for (const WorkFact& fact : kFacts) {
    if (told.contains(fact.name) && !silent.contains(fact.name)) compared.emplace_back(fact.name);
  }
  if (unequal) {
    notes.emplace_back("UNEQUAL WORK: programs differ in what they trained, see the rows");
  } else if (!compared.empty()) {
    notes.push_back("all programs report the same " + join(compared, ", "));
  }
  std::vector<std::string> unknown;
  for (const auto& [fact, programs] : silent) {
    unknown.push_back(fmt::format("{} ({})", fact, join({programs.begin(), programs.end()}, ", ")));
  }
  if (!unknown.empty()) {
    notes.push_back("equal work is not known where a program does not report it: " +
                    join(unknown, "; "));
  }
  return notes;
}

}  // namespace paceline
