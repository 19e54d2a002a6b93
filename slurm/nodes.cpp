#include "slurm/nodes.h"

#include <algorithm>

#include "engine/core/text.h"

namespace paceline {

namespace {

// Machines of which no more is told than their CPU's name are only like others such.
bool known_alike(const Machine& a, const Machine& b) {
  return (a.cpus > 0) == (b.cpus > 0) && alike(a, b);
}

}  // namespace

Nodes::Nodes(const Journal& journal, const StoreContent& store, JobPlace place)
    : place_(std::move(place)) {
  for (const SentArray& array : journal.arrays()) sessions_.insert(array.session);
  std::vector<Machine> machines;
  for (const Record& record : store.records) {
    if (record->completed() && made_there(record)) machines.push_back(identify_machine(record));
  }
  seen_ = kinds_of_machines(std::move(machines));
}

bool Nodes::made_there(const Record& record) const {
  const Machine machine = identify_machine(record);
  if (place_.node && machine.is_known() && !alike(*place_.node, machine)) return false;
  const std::optional<Allocation>& allocation = record->provenance.allocation;
  if (!allocation || allocation->job.empty()) return sessions_.contains(record->session);
  const std::string& cluster = allocation->cluster;
  if (!place_.cluster.empty() && !cluster.empty() && cluster != place_.cluster) return false;
  const std::string& partition = allocation->partition;
  if (place_.partition.empty() || partition.empty()) return true;
  const std::vector<std::string> asked = split(place_.partition, ',');
  return std::find(asked.begin(), asked.end(), partition) != asked.end();
}

bool Nodes::is_like_a_node(const Machine& machine) const {
  if (!machine.is_known()) return false;
  if (place_.node) return alike(*place_.node, machine);
  return std::any_of(seen_.begin(), seen_.end(),
                     [&](const Machine& node) { return known_alike(node, machine); });
}

std::string Nodes::other_machine(const Record& record) const {
  if (made_there(record)) return "";
  const Machine machine = identify_machine(record);
  return is_like_a_node(machine) ? "" : machine.text();
}

StoreContent Nodes::counted(const StoreContent& store) const {
  StoreContent content;
  content.rejected = store.rejected;
  for (const Record& record : store.records) {
    if (other_machine(record).empty()) content.records.push_back(record);
  }
  return content;
}

}  // namespace paceline
