#include "analysis/evidence/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/text.h"
#include "engine/facts/rank.h"

namespace paceline {

namespace {

void add_phases(Run& run, const RunRecord& record) {
  auto sums = to_numbers(PhaseSeconds{});
  const std::optional<RanksFacts>& many = *record.ranks;
  for (const RankFacts* rank : record.known_ranks()) {
    if (!rank->phases) continue;
    const int ranks = many && rank == &many->spread.mean ? many->count : 1;
    const auto seconds = to_numbers(*rank->phases);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += ranks * seconds[i];
    run.phase_ranks += ranks;
  }
  if (run.phase_ranks > 0) *run.phase_sum = from_numbers<PhaseSeconds>(sums);
}

void add_goal(Run& run, const std::optional<GoalFacts>& until) {
  if (!until || until->goal.empty()) return;
  run.goal = until->goal;
  run.goal_reached = until->reached.value_or(false);
  if (run.goal_reached) run.epochs_to_goal = until->epochs;
}

// Of batch per replica, global batch and rate, what follows from the others.
void fill_in(Run& run) {
  const double batches =
      run->layout.gpus * run->parameters.real("gradient_accumulation_steps").value_or(1);
  if (!run.global_batch && run.batch_per_replica) {
    run.global_batch = *run.batch_per_replica * batches;
  }
  if (!run.batch_per_replica && run.global_batch) {
    run.batch_per_replica = *run.global_batch / batches;
  }
  const auto stated = run.samples(), samples = stated ? stated : run.samples_by_steps();
  if (!run.samples_per_second && samples && run.fit_seconds()) {
    run.samples_per_second = *samples / *run.fit_seconds();
  }
}

// Of steps a second, those of more replicas are of more samples: rates are in these, where the
// batch is known, and of all replicas' steps, where each does the same work.
void count_what_steps_hold(Run& run) {
  const bool grows = run->parameters.text("work") == "grows";
  if (run->throughput->unit != "steps" || !(run.global_batch || grows)) return;
  const double held = run.global_batch.value_or(run->layout.gpus);
  RunRecord& record = own_record(run);
  Throughput& rate = *record.throughput;
  std::string& text = record.provenance.rate_is;
  text = std::string("steps/s times the ") + (run.global_batch ? "samples of a step" : "replicas") +
         (text.empty() ? "" : ": ") + text;
  if (run.global_batch) rate.unit.clear();
  for (auto* value : {&rate.samples_per_second, &rate.samples, &run.samples_per_second}) {
    if (*value) **value *= held;
  }
}

std::string describe_system(const Provenance& made) {
  return made.stack + (made.stack.empty() || made.hardware.empty() ? "" : ", ") + made.hardware;
}

}  // namespace

RunRecord& own_record(Run& run) {
  auto copy = std::make_shared<RunRecord>(*run.record);
  run.record = copy;
  return *copy;
}

fact::Real Run::samples() const {
  return record->throughput->samples;
}

fact::Real Run::steps() const {
  return record->throughput->steps;
}

std::optional<double> Run::samples_by_steps() const {
  const auto steps = record->parameters.real("steps");
  const bool is_of_program = record->provenance.program || record->kind == "imported";
  if (!steps || !global_batch || !is_of_program || find_unit(*this) != Unit{}) return std::nullopt;
  return *steps * *global_batch;
}

std::optional<double> Run::cost() const {
  const auto fit = fit_seconds();
  if (fit && !find_unit(*this).is_own()) return fit;
  return samples_per_second ? std::optional(1 / *samples_per_second) : fit;
}

std::optional<double> Run::cpus_per_replica() const {
  return replica_cpus(record->layout);
}

std::optional<double> Run::matched_cpus() const {
  if (replicas_are_cores()) return cpus_per_replica();
  const auto& cpus = record->layout.cpus_per_task;
  return cpus ? std::optional<double>(*cpus) : std::nullopt;
}

std::optional<double> Run::mean_loss() const {
  double sum = 0;
  std::size_t count = 0;
  for (const EpochFacts& epoch : record->quality.epochs) {
    if (!epoch.train_loss) continue;
    if (std::isnan(*epoch.train_loss)) return std::nan("");
    sum += std::log(std::max(*epoch.train_loss, 1e-12));
    ++count;
  }
  return count > 0 ? std::optional(std::exp(sum / static_cast<double>(count))) : std::nullopt;
}

PointKey Run::key(const MatchRule& rule) const {
  return {{.parameters = record->parameters,
           .layout = &record->layout,
           .workload = record->workload,
           .kind = record->kind,
           .system = system,
           .backend = backend},
          rule};
}

Run make_run(const Record& record) {
  Run run(record.where(), record.facts());
  run.precision = run->parameters.text("precision").value_or("");
  run.backend = run->parameters.text("backend").value_or("");
  run.system = describe_system(run->provenance);
  run.machine = identify_machine(record);
  run.origin = summarize_provenance(*record);
  run.step_seconds = record->max_over_ranks([](const RankFacts& rank) {
    return rank.step_seconds ? rank.step_seconds->p50 : std::nullopt;
  });
  if (const auto& stated = run->throughput->samples_per_second) {
    run.samples_per_second = find_unit(run).shown(*stated);
  }
  run.global_batch = run->plan.global_batch;
  if (!run.global_batch) run.global_batch = run->parameters.real("global_batch");
  run.batch_per_replica = run->parameters.real("batch_per_replica");
  add_goal(run, run->quality.until);
  add_phases(run, *record);
  fill_in(run);
  count_what_steps_hold(run);
  return run;
}

std::string Unit::rate_key() const {
  if (!is_own()) return name + "_per_second";
  std::string key;
  for (const char c : name) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    key += c == '/' ? "_per_" : is_word ? to_lower(std::string(1, c)) : "_";
  }
  return key;
}

std::string Unit::cost() const {
  if (!is_own()) return "s/" + one();
  if (better == "less") return name;
  const std::size_t slash = name.find('/');
  return slash == std::string::npos ? "1/" + name
                                    : name.substr(slash + 1) + "/" + name.substr(0, slash);
}

std::optional<Estimate> Unit::shown(std::optional<Estimate> rate) const {
  if (!rate || better != "less") return rate;
  return transformed(*rate, [](double each) { return 1 / each; });
}

std::string Unit::text(double per_second) const {
  constexpr double kGrouped = 10000;
  const double value = shown(per_second);
  return (value < kGrouped ? fmt::format("{:.4g}", value) : format_rate(value)) + " " + rate();
}

Unit find_unit(const Run& run) {
  const Throughput& rate = *run->throughput;
  return rate.unit.empty() ? Unit{} : Unit{rate.unit, rate.better};
}

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
      {"backend", made.backend_requested},
      {"transport", made.backend_used},
      {"GPU links", record.gpus.empty() ? "" : record.gpus.front().links},
      {"network", describe_ports(made.machine.network)},
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
