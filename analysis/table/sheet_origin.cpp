// Code and machine, for a sheet.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "analysis/findings/findings.h"
#include "analysis/findings/legend.h"
#include "analysis/study/labels.h"
#include "analysis/table/sheet.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

template <typename Text>
ProvenanceFact count_texts(const std::string& name, const Study& study, Text text) {
  std::map<std::string, std::size_t> counts;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) ++counts[text(run)];
  }
  counts.erase("");
  return {name, {counts.begin(), counts.end()}};
}

std::string commit_text(const std::string& commit, const std::optional<bool>& dirty) {
  if (commit.empty()) return "";
  return ", commit " + commit +
         (!dirty   ? ""
          : *dirty ? " with uncommitted changes"
                   : " without uncommitted changes");
}

// Of numbers made elsewhere the source says it.
std::string describe_code(const Run& run) {
  if (run.made_elsewhere()) return "";
  const Provenance& made = run->provenance;
  const std::string paceline = "Paceline" + (made.version.empty() ? "" : " " + made.version);
  if (made.program) {
    return (made.program->name.empty() ? "a program without a name" : made.program->name) +
           commit_text(made.program->commit, made.program->dirty) + "; measured by " + paceline;
  }
  return paceline + commit_text(made.commit, made.dirty) + "; workload " + run->workload;
}

// "1 to 4 nodes, 4 GPUs a node"
std::string describe_nodes(const Study& study) {
  Range nodes, each;
  for (const Row& row : study.rows) {
    const LayoutFacts& layout = row.first()->layout;
    if (!layout.nodes) return "";
    nodes.add(*layout.nodes);
    each.add(static_cast<double>(layout.gpus) / *layout.nodes);
  }
  const int digits = each.low == std::floor(each.low) && each.high == std::floor(each.high) ? 0 : 1;
  return fmt::format("{} {}, {} {} a node", range_text(nodes, 0),
                     nodes.high == 1 ? "node" : "nodes", range_text(each, digits),
                     study.replicas_are_cores ? "replicas (groups of CPU cores)" : "GPUs used");
}

std::string list_unrecorded(const Study& study) {
  bool commit = false, cpu = false, transport = false;
  for (const Row& row : study.rows) {
    for (const Run& run : row.runs) {
      const Provenance& made = run->provenance;
      commit = commit || (made.program ? made.program->commit : made.commit).empty();
      cpu = cpu || run.machine.cpu_model.empty();
      transport = transport || (run->layout.gpus > 1 && made.backend_used.empty());
    }
  }
  std::vector<std::string> names;
  if (commit) names.emplace_back("the commit");
  if (describe_nodes(study).empty()) names.emplace_back("the nodes");
  if (cpu) names.emplace_back("the CPUs");
  if (transport) names.emplace_back("the interconnect");
  return names.empty() ? "" : "not recorded by all runs, so add it by hand: " + join(names, ", ");
}

bool is_gap_of(const Study& part, const Row& gap) {
  const MatchRule rule = MatchRule::base(part.axes);
  return std::ranges::any_of(
      part.rows, [&](const Row& row) { return row.first().key(rule) == gap.first().key(rule); });
}

}  // namespace

std::vector<ProvenanceFact> list_origins(const Study& study) {
  std::vector<ProvenanceFact> facts = {
      count_texts("code", study, describe_code), count_texts("node", study, [](const Run& run) {
        const Machine node{run.machine.cpu_model, "", run.machine.cpus, run.machine.memory_bytes};
        return node.is_known() ? node.text() : std::string();
      })};
  static const std::set<std::string, std::less<>> kShown = {
      "source",    "system",  "GPU",  "cluster",  "library", "transport",
      "GPU links", "network", "data", "packages", "started"};
  for (ProvenanceFact& fact : provenance(study)) {
    if (kShown.contains(fact.name)) facts.push_back(std::move(fact));
  }
  std::erase_if(facts, [](const ProvenanceFact& fact) { return fact.values.empty(); });
  return facts;
}

Section origin_section(const Study& study, const std::vector<ProvenanceFact>& facts) {
  const auto runs = summed(study.rows, [](const Row& row) { return row.runs.size(); });
  Section section{.title = "Code and machine"};
  for (const ProvenanceFact& fact : facts) {
    const bool is_of_all = fact.values.size() == 1 && fact.values.front().second == runs;
    section.findings.emplace_back(is_of_all ? fact.name + ": " + fact.values.front().first
                                            : format_sentence(fact));
  }
  if (const std::string nodes = describe_nodes(study); !nodes.empty()) {
    section.findings.emplace_back("layout: " + nodes);
  }
  if (const std::string names = list_unrecorded(study); !names.empty()) {
    section.findings.emplace_back(names);
  }
  return section;
}

Study take_rows(const Study& study, const std::vector<std::size_t>& indices) {
  Study part = study;
  part.rows.clear();
  for (const std::size_t index : indices) part.rows.push_back(study.rows[index]);
  std::erase_if(part.gaps, [&](const Row& gap) { return !is_gap_of(part, gap); });
  add_row_warnings(part);
  part.notes = row_notes(part);
  return part;
}

}  // namespace paceline
