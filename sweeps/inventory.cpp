#include "sweeps/inventory.h"

#include "engine/core/text.h"
#include "results/match.h"
#include "results/run_record.h"

namespace paceline {

namespace {

using Key = std::pair<std::string, int>;  // point folder, repeat

struct Known {
  std::vector<const Record*> records;  // by attempt
  bool rejected = false;               // there is one that cannot be used
};

// "STUDY/<point>/<repeat>.<attempt>.json"
Key key_of_file(const std::filesystem::path& file) {
  const std::string stem = file.filename().string();
  return {file.parent_path().filename().string(),
          static_cast<int>(to_integer(stem.substr(0, stem.find('.'))).value_or(0))};
}

std::map<Key, Known> index_records(const StoreContent& store) {
  std::map<Key, Known> index;
  for (const Record& record : store.records) {
    index[key_of_file(record.where())].records.push_back(&record);
  }
  for (const Rejected& rejected : store.rejected) {
    index[key_of_file(rejected.file)].rejected = true;
  }
  return index;
}

bool same_parameters(const Record& record, const Resolved& resolved) {
  if (!resolved.identity.empty()) return record->identity == resolved.identity;
  return serves(record->parameters, resolved.parameters);
}

// "epochs was 2, is 3", for the first few that differ; those that only one of them has come last.
std::string differences_text(const Point& before, const Point& now) {
  constexpr std::size_t kShown = 3;
  PointDifferences found = differences(before, now);
  found.changed.insert(found.changed.end(), found.one_sided.begin(), found.one_sided.end());
  if (found.changed.size() > kShown) {
    found.changed.resize(kShown);
    found.changed.emplace_back("...");
  }
  return join(found.changed, ", ");
}

std::string why_changed(const Record& record, const Resolved& resolved) {
  if (same_parameters(record, resolved)) return "its record is of other data";
  const std::string what = differences_text(record->parameters, resolved.parameters);
  return what.empty() ? "its record is of other parameters" : "other parameters: " + what;
}

bool other_build(const RunRecord& record, const Resolved& resolved) {
  if (resolved.program && record.provenance.program) {
    return record.provenance.program->differs_from(*resolved.program);
  }
  return record.build() != resolved.build;
}

// A record of this build is found also behind those of others.
void judge(RunStatus& status, const Known& known, const Resolved& resolved, bool new_build,
           const OtherMachine& other_machine) {
  if (known.rejected) status.why = "its record cannot be used";
  for (const Record* record : known.records) {
    if (status.state == RunState::done && other_build(**record, resolved)) continue;
    std::string elsewhere;
    const bool same =
        same_parameters(*record, resolved) &&
        (resolved.data_hash.empty() || (*record)->provenance.data_hash == resolved.data_hash);
    if (!(*record)->completed()) {
      status.state = RunState::failed;
      status.why = (*record)->reason.empty() ? (*record)->status
                                             : (*record)->status + ": " + (*record)->reason;
    } else if (!same) {
      status.state = RunState::changed;
      status.why = why_changed(*record, resolved);
    } else if (new_build && other_build(**record, resolved)) {
      status.state = RunState::changed;
      status.why = "its record is of another build (" + (*record)->build() + ")";
    } else if (other_machine && !(elsewhere = other_machine(*record)).empty()) {
      status.state = RunState::elsewhere;
      status.why = "its record is of another machine (" + elsewhere + ")";
      status.other_machine = elsewhere;
    } else {
      status = {status.run,
                RunState::done,
                record->where(),
                (*record)->whole_seconds(),
                other_build(**record, resolved),
                ""};
      if (!status.other_build) return;
    }
  }
}

}  // namespace

std::vector<RunStatus> take_inventory(const std::vector<PlannedPoint>& points,
                                      const std::vector<ScheduledRun>& runs,
                                      const StoreContent& store,
                                      const std::vector<Resolved>& resolved, bool new_build,
                                      const OtherMachine& other_machine) {
  const std::map<Key, Known> index = index_records(store);
  std::vector<RunStatus> statuses;
  for (const ScheduledRun& run : runs) {
    RunStatus status{run, RunState::missing, kNoRecord, 0, false, ""};
    const auto found = index.find({points[run.point].point.folder(), run.repeat});
    if (found != index.end()) {
      judge(status, found->second, resolved[run.point], new_build, other_machine);
    }
    statuses.push_back(std::move(status));
  }
  return statuses;
}

}  // namespace paceline
