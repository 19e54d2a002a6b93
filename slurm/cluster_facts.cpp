#include "slurm/cluster_facts.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "engine/core/text.h"
#include "results/run_record.h"

namespace paceline {

namespace {

std::vector<std::vector<std::string>> parse_table(const CommandResult& result,
                                                  std::size_t columns) {
  std::vector<std::vector<std::string>> rows;
  if (!result.ok()) return rows;
  for (const std::string& line : split(result.out, '\n')) {
    std::vector<std::string> row = split(std::string(trim(line)), '|');
    if (row.size() >= columns) rows.push_back(std::move(row));
  }
  return rows;
}

// 0 where it is no count.
int positive(const std::string& text) {
  const auto count = to_integer(text);
  return count && *count > 0 && *count <= 10'000 ? static_cast<int>(*count) : 0;
}

// 4 for "gpu:v100:4(S:0-1),nvme:1".
int count_gpus(const std::string& gres) {
  int gpus = 0;
  for (const std::string& one : split(gres, ',')) {
    const std::vector<std::string> parts = split(one.substr(0, one.find('(')), ':');
    if (parts.front() == "gpu") gpus += positive(parts.back());
  }
  return gpus;
}

// Counts array elements one by one. Ended jobs that Slurm still remembers count for MaxJobCount
// only.
std::optional<std::size_t> count_queue(const SlurmCommands& slurm,
                                       const std::vector<std::string>& whose) {
  std::vector<std::string> words = {"squeue", "-h", "-r", "-a", "-o", "%i"};
  words.insert(words.end(), whose.begin(), whose.end());
  const CommandResult result = slurm.run(words);
  if (!result.ok()) return std::nullopt;
  return static_cast<std::size_t>(std::count(result.out.begin(), result.out.end(), '\n'));
}

class RoomFinder {
 public:
  RoomFinder(const Site& site, const SlurmCommands& slurm) : site_(site), slurm_(slurm) {}

  QueueRoom find(std::size_t wanted) {
    if (site_.max_submit > 0) {
      add_mine(static_cast<std::size_t>(site_.max_submit),
               fmt::format("array.max_submit is {}", site_.max_submit));
    }
    const std::string enforced = slurm_.configured("AccountingStorageEnforce");
    if (enforced.find("limits") != std::string::npos ||
        enforced.find("safe") != std::string::npos) {
      add_account();
    }
    add_all_jobs(wanted);
    return room_;
  }

 private:
  void add(std::size_t most, std::size_t there, const std::string& by) {
    const std::size_t room = most - std::min(most, there);
    if (room >= room_.elements) return;
    room_ = {room, most, by};
  }

  void add_mine(std::size_t most, const std::string& by) {
    if (!mine_) mine_ = count_queue(slurm_, {"-u", std::to_string(geteuid())});
    add(most, mine_.value_or(0), by);
  }

  void add_limit(const std::string& text, const std::string& by) {
    const auto most = to_integer(text);
    if (most && *most > 0) add_mine(static_cast<std::size_t>(*most), by + " is " + text);
  }

  // Reads the rows "account|partition|limit|QOS" of this user.
  void add_account() {
    std::string qos = site_.qos;
    const auto rows = parse_table(
        slurm_.run({"sacctmgr", "-n", "-P", "show", "assoc", "where", "user=" + user_name(),
                    "format=Account,Partition,MaxSubmitJobs,DefaultQOS"}),
        4);
    for (const auto& row : rows) {
      if (!site_.account.empty() && row[0] != site_.account) continue;
      if (!row[1].empty() && !site_.partition.empty() && row[1] != site_.partition) continue;
      add_limit(row[2], "MaxSubmitJobs of account " + row[0]);
      if (qos.empty()) qos = row[3];
    }
    if (qos.empty()) qos = "normal";
    for (const auto& row :
         parse_table(slurm_.run({"sacctmgr", "-n", "-P", "show", "qos", "where", "name=" + qos,
                                 "format=Name,MaxSubmitJobsPerUser"}),
                     2)) {
      add_limit(row[1], "MaxSubmitJobsPerUser of QOS " + row[0]);
    }
  }

  // Counts the jobs of all users, but only if the limit may be near.
  void add_all_jobs(std::size_t wanted) {
    constexpr std::size_t kFar = 10;
    const auto most = to_integer(slurm_.configured("MaxJobCount"));
    if (!most || *most < 1 || wanted * kFar < static_cast<std::size_t>(*most)) return;
    const auto there = count_queue(slurm_, {"-t", "all"});
    // If the queue is exactly full, sbatch retries for minutes.
    if (there) {
      add(static_cast<std::size_t>(*most) - 1, *there,
          fmt::format("MaxJobCount of this Slurm is {}", *most));
    }
  }

  const Site& site_;
  const SlurmCommands& slurm_;
  std::optional<std::size_t> mine_;
  QueueRoom room_;
};

}  // namespace

std::string user_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry ? entry->pw_name : std::to_string(geteuid());
}

NodeCounts count_nodes(const Site& site, const SlurmCommands& slurm) {
  std::vector<std::string> words = {"sinfo", "-h", "-N", "-o", "%P|%X|%Y|%c|%G"};
  if (!site.partition.empty()) words.insert(words.end(), {"-p", site.partition});
  const auto rows = parse_table(slurm.run(words), 3);
  const bool has_default =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row[0].ends_with('*'); });
  NodeCounts facts;
  for (const auto& row : rows) {
    if (site.partition.empty() && has_default && !row[0].ends_with('*')) continue;
    const int sockets = positive(row[1]), cores = positive(row[2]);
    if (sockets == 0 || cores == 0) continue;
    facts.cores = facts.cores == 0 ? sockets * cores : std::min(facts.cores, sockets * cores);
    if (row.size() > 3) facts.cpus = std::max(facts.cpus, positive(row[3]));
    if (row.size() > 4) facts.gpus = std::max(facts.gpus, count_gpus(row[4]));
  }
  return facts;
}

QueueRoom ask_queue_room(const Site& site, const SlurmCommands& slurm, std::size_t wanted) {
  return RoomFinder(site, slurm).find(wanted);
}

bool is_refused_for_now(const std::string& complaint) {
  const auto says = [&](const char* text) { return complaint.find(text) != std::string::npos; };
  return (says("Submit") && says("Limit")) || says("job submit limit") ||
         says("temporarily unable to accept job");
}

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
  // Machines of which no more is told than their CPU's name are only like others such.
  return std::ranges::any_of(seen_, [&](const Machine& node) {
    return (node.cpus > 0) == (machine.cpus > 0) && alike(node, machine);
  });
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
