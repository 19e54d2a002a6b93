#include "analysis/study/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "analysis/study/labels.h"
#include "engine/core/backend_stack.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/facts/timing.h"

namespace paceline {

namespace {

bool nothing_follows(const Parameter&) {
  return false;
}
bool follows_communication(const Parameter& parameter) {
  return parameter.name == "cpus_per_task";
}
bool follows_input(const Parameter& parameter) {
  return parameter.need == Requirement::encoded_images || parameter.name == "weights";
}

double percent_above_one(double ratio) {
  return 100 * (ratio - 1);
}

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
               const auto& count = run->plan.parameter_count;
               return count ? fmt::format("{} parameters", *count) : "";
             }},
    WorkFact{"precision",
             [](const Run& run) {
               const auto& program = run->provenance.program;
               return program ? program->precision : "";
             }},
    WorkFact{"global batch",
             [](const Run& run) { return whole(run->plan.global_batch, "samples a step"); }},
    WorkFact{"samples", [](const Run& run) { return whole(run.samples(), "samples"); }, true},
};

bool matters(const WorkFact& fact, const Row& row) {
  return !fact.of_time || !row.first()->throughput->samples_per_second;
}

std::string describe_program(const Row& row) {
  return row.first()->provenance.program ? row.first()->parameters.text("program").value_or("")
                                         : "";
}

// Indices of rows of several programs at one point.
std::vector<std::vector<std::size_t>> contests(const std::vector<Row>& rows) {
  const MatchRule rule = MatchRule::but_for_program();
  std::map<PointKey, std::vector<std::size_t>> by_place;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!describe_program(rows[i]).empty()) by_place[rows[i].first().key(rule)].push_back(i);
  }
  std::vector<std::vector<std::size_t>> result;
  for (auto& [place, members] : by_place) {
    const auto program = [&](std::size_t i) { return describe_program(rows[i]); };
    if (distinct(members, program).size() > 1) result.push_back(std::move(members));
  }
  return result;
}

// "train.py" of "python3 train.py --gpus 2"; else the program's name.
std::string find_script(const Run& run) {
  for (const std::string& word : split(run->provenance.command, ' ')) {
    const std::filesystem::path file(word);
    const std::string ending = file.extension();
    if (!word.starts_with("-") && ending.size() > 1 &&
        std::isalpha(static_cast<unsigned char>(ending[1]))) {
      return file.filename();
    }
  }
  return run->provenance.program->name;
}

// The programs as they were seen after the run, if the plans of its study know one state of them.
const std::vector<ProgramFacts>& programs_after(const Run& run,
                                                const std::vector<ExpectedRuns>& plans) {
  static const std::vector<ProgramFacts> kNone;
  const ExpectedRuns* known = nullptr;
  for (const ExpectedRuns& plan : plans) {
    if (plan.study != run->study || plan.programs.empty()) continue;
    if (known) return kNone;
    known = &plan;
  }
  return known && run->provenance.started_at <= known->seen_at ? known->programs : kNone;
}

bool is_older_program(const ProgramFacts& program, const ProgramFacts& now) {
  return program.name == now.name && program.directory == now.directory &&
         program.differs_from(now);
}

}  // namespace

const std::array<Switch, 4>& switches() {
  static const std::array<Switch, 4> table = {{
      {"backend", "null", "communication", "communication (backend null)", true,
       follows_communication},
      {"input", "synthetic", "input", "input (input synthetic)", true, follows_input},
      {"overlap", "false", "overlap", "overlap of communication and backward (overlap false)",
       false, nothing_follows},
      {"update", "false", "update", "the optimizer (update false)", true, nothing_follows},
  }};
  return table;
}

bool is_off(const Run& run, const Switch& what) {
  const auto value = run->parameters.text(what.parameter);
  if (std::string(what.parameter) != "backend" || !value) return value == what.off;
  try {
    return split_stack(*value).between == what.off;
  } catch (const Error&) {
    return false;  // a name of another build's
  }
}

bool is_switched_off(const Run& run) {
  return std::ranges::any_of(switches(), [&](const Switch& what) { return is_off(run, what); });
}

bool is_without_communication(const Run& run) {
  return is_off(run, switches().front());
}

std::vector<bool> spared_work(const Study& study) {
  std::vector<bool> spared(study.rows.size(), false);
  for (const Switch& what : switches()) {
    if (!what.spares_work) continue;
    std::vector<std::size_t> off;
    for (std::size_t i = 0; i < study.rows.size(); ++i) {
      if (is_off(study.rows[i].first(), what)) off.push_back(i);
    }
    if (off.size() == study.rows.size()) continue;  // none does it, so none is spared it
    for (const std::size_t i : off) spared[i] = true;
  }
  return spared;
}

bool ControlCheck::differs() const {
  const auto& interval = ratio.estimate.interval;
  return interval && !doubt && (lies_above(*interval, 1) || lies_below(*interval, 1));
}

std::vector<ControlCheck> check_controls(const Study& study, const Comparison& comparison) {
  std::vector<std::string> names;
  std::vector<ControlCheck> controls;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    if (study.rows[i].controls.empty()) continue;
    if (names.empty()) names = point_names(study);
    Row again;
    again.runs = study.rows[i].controls;
    again.pooled = study.rows[i].pooled;
    controls.push_back({names[i], compute_ratio(again, study.rows[i], comparison.rates),
                        units_in(again), units_in(study.rows[i]),
                        find_weak_evidence(again, study.rows[i])});
  }
  return controls;
}

std::string control_line(const ControlCheck& control) {
  const Estimate& estimate = control.ratio.estimate;
  std::string text = fmt::format("A/A control: {} differs from itself by {:+.1f} %", control.point,
                                 percent_above_one(estimate.value));
  if (estimate.interval) {
    text += fmt::format(" [{:+.1f}, {:+.1f}]", percent_above_one(estimate.interval->low),
                        percent_above_one(estimate.interval->high));
  }
  const char* units = control.doubt.pooled ? "sessions" : "runs";
  text += control.of_control == control.of_point
              ? fmt::format(" ({} {} each)", control.of_point, units)
              : fmt::format(" ({} {}, and {} of the control)", control.of_point, units,
                            control.of_control);
  if (control.doubt.disturbed) return text + ": the point has only disturbed runs to judge by";
  if (control.doubt) return text + fmt::format(": too few {} to judge by", units);
  return text + (control.differs() ? ": find out why before you trust the rest"
                                   : ": smaller differences mean nothing here");
}

void mark_older_programs(std::vector<Row>& rows, const std::vector<ExpectedRuns>& plans) {
  for (Row& row : rows) {
    for (const Run& run : row.runs) {
      const auto& program = run->provenance.program;
      const auto changed = [&](const ProgramFacts& now) { return is_older_program(*program, now); };
      if (!program || std::ranges::none_of(programs_after(run, plans), changed)) continue;
      ++row.older_runs;
      row.older_program = find_script(run);
    }
  }
}

void compare_work(std::vector<Row>& rows) {
  for (const std::vector<std::size_t>& contest : contests(rows)) {
    for (const WorkFact& fact : kFacts) {
      std::map<std::size_t, std::string> texts;
      for (const std::size_t i : contest) {
        const std::string text = matters(fact, rows[i]) ? fact.text(rows[i].first()) : "";
        if (!text.empty()) texts[i] = text;
      }
      if (distinct(texts, [](const auto& each) { return each.second; }).size() < 2) continue;
      for (const auto& [i, text] : texts) {
        std::string& work = rows[i].work;
        work += (work.empty() ? "unequal work: " : ", ") + text;
      }
    }
  }
}

std::vector<std::string> work_notes(const std::vector<Row>& rows) {
  std::map<std::string, std::set<std::string>> silent;  // fact, programs
  std::set<std::string> stated;
  bool several = false, unequal = false;
  for (const std::vector<std::size_t>& contest : contests(rows)) {
    several = true;
    for (const std::size_t i : contest) {
      unequal = unequal || !rows[i].work.empty();
      for (const WorkFact& fact : kFacts) {
        if (!matters(fact, rows[i])) continue;
        stated.insert(fact.name);
        if (fact.text(rows[i].first()).empty()) silent[fact.name].insert(describe_program(rows[i]));
      }
    }
  }
  if (!several) return {};
  std::vector<std::string> compared, notes;
  for (const WorkFact& fact : kFacts) {
    if (stated.contains(fact.name) && !silent.contains(fact.name)) compared.emplace_back(fact.name);
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
    notes.push_back("equal work is not checked where a program does not report it: " +
                    join(unknown, "; "));
  }
  return notes;
}

}  // namespace paceline
