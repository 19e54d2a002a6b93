#include "slurm/study_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/core/file.h"
#include "results/run_record.h"
#include "results/step_samples.h"
#include "sweeps/inventory.h"

namespace paceline {

namespace {

using RunKey = std::pair<std::string, int>;  // point folder, repeat
using Records = std::map<RunKey, std::vector<const Record*>>;

Records index_records(const StoreContent& store) {
  Records records;
  for (const Record& record : store.records) {
    const std::filesystem::path file = record.where();
    records[{file.parent_path().filename().string(), record->repeat}].push_back(&record);
  }
  return records;
}

bool makes_done(const Record& record, const Element& element) {
  return record->completed() &&
         (element.identity.empty() || record->identity == element.identity) &&
         (element.data_hash.empty() || record->provenance.data_hash == element.data_hash);
}

// Slurm's word on an element that has ended. Of one cancelled while it waited no trace is kept.
void judge_by_slurm(RunView& run, const ElementStates& history) {
  const auto found = history.find(run.slurm);
  if (found == history.end()) {
    run.why = fmt::format(
        "{} left no record, and Slurm knows nothing more: cancelled before the start, or forgotten",
        run.slurm.text());
    return;
  }
  const ElementState& state = found->second;
  run.timed_out = state.state == "TIMEOUT";
  if (run.timed_out) {
    run.why = fmt::format("TIMEOUT after {} min ({})", run.minutes, run.slurm.text());
  } else if (state.state == "COMPLETED") {
    run.why = fmt::format("{} left no record, but Slurm says COMPLETED", run.slurm.text());
  } else if (state.in_queue()) {
    run.why =
        fmt::format("{} left no record and the queue, but accounting has it as {}: it was lost",
                    run.slurm.text(), state.state);
  } else {
    const std::string detail = state.detail.empty() ? "" : ", " + state.detail;
    run.why = fmt::format("{}{} ({})", state.state, detail, run.slurm.text());
  }
}

class Viewer {
 public:
  Viewer(const StoreContent& store, const Nodes& nodes, const ElementStates& queue,
         const ElementStates& history)
      : records_(index_records(store)), nodes_(nodes), queue_(queue), history_(history) {}

  // Later submissions of a run stand in for earlier ones, but not for one that is in the queue.
  void add(const SentArray& array, int index) {
    const Element& element = array.elements[static_cast<std::size_t>(index)];
    const auto [place, first] =
        places_.emplace(RunKey{element.point_folder, element.repeat}, runs_.size());
    if (first) runs_.emplace_back();
    RunView& run = runs_[place->second];
    if (queue_.count(run.slurm) != 0 || (array.later && !first)) return;
    run.element = element;
    run.slurm = {array.refused ? 0 : array.job, index};
    run.session = array.session;
    run.shape = array.shape;
    run.minutes = array.minutes;
    run.phase = array.called && !array.refused ? RunPhase::unknown : RunPhase::unsent;
    run.why = array.refused   ? "Slurm refused its array"
              : array.later   ? "left for a later submit: the site takes no more at a time"
              : !array.called ? "submit stopped before its array"
                              : "Slurm's answer to submit was lost";
  }

  std::vector<RunView> judged() {
    for (RunView& run : runs_) judge(run);
    return std::move(runs_);
  }

 private:
  void judge(RunView& run) const {
    const Record* last = nullptr;
    if (const auto found = records_.find({run.element.point_folder, run.element.repeat});
        found != records_.end()) {
      for (const Record* record : found->second) {
        const bool would_do = makes_done(*record, run.element);
        if (would_do) run.other_machine = nodes_.other_machine(*record);
        if (would_do && run.other_machine.empty()) {
          run.phase = RunPhase::done;
          run.has_record = true;
          run.why.clear();
          return;
        }
        if ((*record)->session == run.session) last = record;
      }
    }
    if (run.slurm.job == 0) return;
    run.why.clear();
    if (const auto found = queue_.find(run.slurm); found != queue_.end()) {
      run.phase = found->second.pending() ? RunPhase::pending : RunPhase::running;
      if (run.phase == RunPhase::pending) run.why = found->second.detail;
      return;
    }
    run.phase = RunPhase::failed;
    judge_by_slurm(run, history_);
    if (!last) return;
    run.has_record = true;
    run.timed_out = run.timed_out || (*last)->status == "timeout";
    run.why = (*last)->reason.empty() ? (*last)->status : (*last)->reason;
  }

  Records records_;
  const Nodes& nodes_;
  const ElementStates& queue_;
  const ElementStates& history_;
  std::map<RunKey, std::size_t> places_;
  std::vector<RunView> runs_;
};

constexpr double kUnlike = 1.05;

// Slurm's name of the node, which tells virtual ones apart that share a host.
std::string node_name(const RunRecord& record) {
  const Provenance& made = record.provenance;
  if (made.allocation && !made.allocation->node.empty()) return made.allocation->node;
  const std::vector<std::string> hosts = record.host_names();
  return hosts.empty() ? "unknown" : hosts.front();
}

}  // namespace

std::vector<RunView> view_study(const Journal& journal, const StoreContent& store,
                                const ElementStates& queue, const ElementStates& history,
                                const JobPlace& place) {
  const Nodes nodes(journal, store, place);
  Viewer viewer(store, nodes, queue, history);
  for (const SentArray& array : journal.arrays()) {
    for (std::size_t i = 0; i < array.elements.size(); ++i) {
      viewer.add(array, static_cast<int>(i));
    }
  }
  return viewer.judged();
}

StudyNow look_at_study(const std::filesystem::path& study, const Journal& journal,
                       const SlurmCommands& slurm, const JobPlace& place) {
  const std::vector<std::int64_t> jobs = journal.jobs();
  // The queue before the records: what leaves it in between has its record by then.
  const ElementStates queue = ask_queue(slurm, jobs);
  const ElementStates history = ask_history(slurm, jobs);
  StudyNow now;
  if (path_exists(study)) now.store = load_store(study, RecordParts::outcome);
  now.runs = view_study(journal, now.store, queue, history, place);
  return now;
}

std::size_t runs_in_phase(const std::vector<RunView>& runs, RunPhase phase) {
  return static_cast<std::size_t>(std::ranges::count(runs, phase, &RunView::phase));
}

std::size_t record_lost_runs(const std::filesystem::path& study, const std::vector<RunView>& runs) {
  std::size_t written = 0;
  for (const RunView& run : runs) {
    if (run.phase != RunPhase::failed || run.has_record) continue;
    const Element& element = run.element;
    const RunPlace place{element.study, element.point,  element.point_folder,
                         run.session,   element.repeat, element.repeat};
    Store(study).write({place, element.workload, element.parameters,
                        run.timed_out ? "timeout" : "failed", "Slurm: " + run.why});
    ++written;
  }
  return written;
}

std::vector<std::string> reference_lines(const std::filesystem::path& study) {
  const std::filesystem::path folder = study.string() + ".reference";
  if (!path_exists(folder)) return {};
  std::map<std::string, std::vector<double>> seconds;  // by node
  std::vector<double> all;
  for (const Record& record : load_store(folder).records) {
    const auto fit = record->fit_seconds();
    if (!record->completed() || !fit) continue;
    seconds[node_name(*record)].push_back(*fit);
    all.push_back(*fit);
  }
  if (all.empty()) return {};
  const double usual = median(all);
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  std::vector<std::string> lines = {
      fmt::format("reference runs: {} on {} nodes, median {:.4f} s, from {:.4f} to {:.4f} s",
                  all.size(), seconds.size(), usual, *least, *most)};
  for (const auto& [node, times] : seconds) {
    if (median(times) <= kUnlike * usual) continue;
    lines.push_back(fmt::format("note: {} is {:.0f} % slower than the median of all jobs ({} runs)",
                                node, 100 * (median(times) / usual - 1), times.size()));
  }
  return lines;
}

}  // namespace paceline
