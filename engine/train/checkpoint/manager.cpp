#include "engine/train/checkpoint/manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/train/gather.h"

namespace paceline {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{16} << 20;
constexpr double kPatience = 0.5;  // seconds; well below the shortest deadline that makes sense

// Values that a checkpoint's run and this one have; nothing: not given.
using Values = std::map<std::string, std::string>;

std::optional<std::string> value_in(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::string to_hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte one : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(one));
  return text;
}

// Empty where the text is none of that many bytes.
std::vector<std::byte> from_hexadecimal(const std::string& text, std::size_t bytes) {
  std::vector<std::byte> values;
  if (text.size() != 2 * bytes) return values;
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::string digits = text.substr(2 * i, 2);
    if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
    values.push_back(static_cast<std::byte>(std::stoi(digits, nullptr, 16)));
  }
  return values;
}

// A text of rank 0, to all.
std::string broadcast_text(Communicator& communicator, std::string text) {
  std::uint64_t size = text.size();
  communicator.broadcast(&size, sizeof size, 0);
  text.resize(size);
  if (size > 0) communicator.broadcast(text.data(), size, 0);
  return text;
}

constexpr double kSeconds = 0.5;    // between questions
constexpr std::size_t kGrowth = 2;  // of their distance in steps: the first steps are no measure

constexpr char kModel[] = "model";

struct Answer {
  PendingRequests asked;
  double seconds_per_step = 0;  // 0: not known yet
};

}  // namespace

CheckpointManager::CheckpointManager(const CheckpointSetup& setup, Run run)
    : setup_(setup),
      run_(std::move(run)),
      vote_(*run_.communicator),
      saved_at_(now_seconds()),
      background_(run_.cpus) {
  // What cannot be written ends the run now, not after the training.
  if (is_first() && !setup_.run.empty()) check_replaceable(setup_.run / kModel);
  if (!is_first() || !saves()) return;
  folder_ = std::make_unique<CheckpointFolder>(setup_.run, setup_.workload);
  const std::size_t bytes = run_.plan->arena_elements * size_of(run_.plan->real);
  snapshot_.parameters = host_memory(bytes);
  const int moments = keeps_moments() ? state_arenas(run_.optimizer) : 0;
  if (moments > 0) snapshot_.first = host_memory(bytes);
  if (moments > 1) snapshot_.second = host_memory(bytes);
}

std::optional<TrainingProgress> CheckpointManager::resume() {
  CheckpointManifest manifest;
  std::string text;
  if (is_first() && !setup_.resume.empty()) {
    manifest = read_manifest(setup_.resume);
    check_goes_on(manifest);
    text = manifest.json();
  }
  text = broadcast_text(*run_.communicator, std::move(text));
  if (text.empty()) return std::nullopt;
  if (!is_first()) manifest = parse_manifest(text, "the manifest of rank 0");
  put_back(manifest);
  TrainingProgress progress = manifest.progress;
  if (!is_first()) progress.sums = {};  // they are of all ranks
  return progress;
}

void CheckpointManager::check_goes_on(const CheckpointManifest& manifest) const {
  const std::string where = setup_.resume.string();
  if (manifest.workload != setup_.workload || manifest.network != run_.plan->network) {
    throw usage_error(
        fmt::format("the checkpoint is for workload {} ({}), not for {} ({})", manifest.workload,
                    manifest.network, setup_.workload, run_.plan->network),
        where, "use the same workload, or load only its weights with --weights");
  }
  check_has_state(setup_.resume, manifest, *run_.plan, state_arenas(run_.optimizer));
  std::vector<std::string> changed;
  for (const auto& [name, now] : setup_.facts) {
    const std::optional<std::string> then = value_in(manifest.run, name);
    const bool is_compared = now.absence_counts || (now.value && then);
    if (!is_compared || now.value == then || now.on_change == OnChange::ignored) continue;
    const std::string is = now.value.value_or("not given"), was = then.value_or("not given");
    if (now.on_change == OnChange::refused && now.value && then) {
      throw usage_error(
          fmt::format("{} is {}, but {} in the checkpoint: the run would not continue as it began",
                      name, is, was),
          where, "use the same value, or load only its weights with --weights");
    }
    changed.push_back(fmt::format("{} {} (was {})", name, is, was));
  }
  notify(fmt::format("resuming after step {} of {}", manifest.progress.step, where));
  if (!changed.empty()) notify("resuming with changed settings: " + join(changed, ", "));
}

// `from`, on rank 0, to the same place of every rank's program, in pieces through the host.
void CheckpointManager::hand_out(std::span<std::byte> to, const std::byte* from) {
  std::vector<std::byte> piece(std::min(kPieceBytes, to.size()));
  for (std::size_t at = 0; at < to.size(); at += kPieceBytes) {
    const std::size_t bytes = std::min(kPieceBytes, to.size() - at);
    if (is_first()) std::memcpy(piece.data(), from + at, bytes);
    run_.communicator->broadcast(piece.data(), bytes, 0);
    run_.device->copy_to_device(to.data() + at, piece.data(), bytes);
  }
}

// Each rank its own, or all of them the mean where there were other ranks.
void CheckpointManager::hand_out_statistics(std::span<std::byte> to, int ranks_then) {
  std::vector<std::byte>& all = snapshot_.statistics;
  all.resize(to.size() * static_cast<std::size_t>(ranks_then));
  for (std::size_t at = 0; at < all.size(); at += kPieceBytes) {
    run_.communicator->broadcast(all.data() + at, std::min(kPieceBytes, all.size() - at), 0);
  }
  if (ranks_then == run_.communicator->size()) {
    const auto rank = static_cast<std::size_t>(run_.communicator->rank());
    return run_.device->copy_to_device(to.data(), all.data() + rank * to.size(), to.size());
  }
  const std::vector<std::byte> mean = mean_of_ranks(all, ranks_then, run_.plan->real);
  run_.device->copy_to_device(to.data(), mean.data(), mean.size());
}

void CheckpointManager::put_back(const CheckpointManifest& manifest) {
  if (is_first()) {
    read_checkpoint(setup_.resume, manifest, *run_.program, *run_.plan,
                    state_arenas(run_.optimizer), snapshot_);
  }
  const ProgramState state = run_.program->state(run_.optimizer);
  hand_out(state.parameters, snapshot_.parameters.data());
  if (!state.first.empty()) hand_out(state.first, snapshot_.first.data());
  if (!state.second.empty()) hand_out(state.second, snapshot_.second.data());
  if (!state.statistics.empty()) hand_out_statistics(state.statistics, manifest.ranks);
  const auto scale = from_hexadecimal(manifest.loss_scale, state.loss_scale.size());
  if (!scale.empty()) {
    run_.device->copy_to_device(state.loss_scale.data(), scale.data(), scale.size());
  }
  run_.program->state_written();
}

PendingRequests CheckpointManager::after_step(std::size_t step) {
  PendingRequests requests;
  if (!saves()) return requests;
  requests.save = setup_.schedule.after_step(step);
  if (!vote_.is_due(step)) return requests;
  PendingRequests mine;
  const int signal = setup_.stop_signal ? setup_.stop_signal() : 0;
  mine.stop = signal != 0;
  mine.save = is_first() && setup_.schedule.after_seconds(now_seconds() - saved_at_);
  const PendingRequests voted = vote_.ask(step, mine);
  requests.stop = voted.stop;
  requests.save = requests.save || voted.save;
  return requests;
}

// The state as it is, to the host of rank 0; with the statistics and sums of all ranks.
void CheckpointManager::take_down(TrainingProgress& progress) {
  const ProgramState state = run_.program->state(run_.optimizer);
  sum_over_ranks(*run_.communicator, progress.sums);
  std::vector<std::byte> mine(state.statistics.size());
  if (!mine.empty()) {
    run_.device->copy_to_host(mine.data(), state.statistics.data(), mine.size());
    snapshot_.statistics.resize(mine.size() * static_cast<std::size_t>(run_.communicator->size()));
    run_.communicator->all_gather(mine.data(), mine.size(), snapshot_.statistics.data());
  }
  taken_step_ = progress.step;
  if (!is_first()) return;
  const auto copy = [&](std::span<const std::byte> from, Memory& to) {
    if (from.empty()) return;
    if (to.bytes() < from.size()) to = host_memory(from.size());
    run_.device->copy_to_host(to.data(), from.data(), from.size());
  };
  copy(state.parameters, snapshot_.parameters);
  if (keeps_moments()) {
    copy(state.first, snapshot_.first);
    copy(state.second, snapshot_.second);
  }
  std::vector<std::byte> scale(state.loss_scale.size());
  if (!scale.empty()) {
    run_.device->copy_to_host(scale.data(), state.loss_scale.data(), scale.size());
  }
  loss_scale_ = to_hexadecimal(scale);
}

CheckpointManifest CheckpointManager::make_manifest(const TrainingProgress& progress) const {
  CheckpointManifest manifest;
  manifest.workload = setup_.workload;
  manifest.network = run_.plan->network;
  manifest.progress = progress;
  manifest.ranks = run_.communicator->size();
  manifest.global_batch = run_.global_batch;
  manifest.optimizer = to_string(run_.optimizer);
  manifest.real = to_string(run_.plan->real);
  for (const auto& [name, fact] : setup_.facts) {
    if (fact.value) manifest.run[name] = *fact.value;
  }
  manifest.loss_scale = loss_scale_;
  manifest.created_at = utc_time_stamp();
  return manifest;
}

void CheckpointManager::save(TrainingProgress progress) {
  const double start = now_seconds();
  wait_for_writer();  // it reads the snapshot
  take_down(progress);
  saved_step_ = progress.step;
  saved_at_ = now_seconds();
  if (is_first()) write(make_manifest(progress));
  times_.blocked_seconds += now_seconds() - start;
}

// A checkpoint that fails costs no training: the run is told of it, and the next one tries again.
void CheckpointManager::write(CheckpointManifest manifest) {
  background_.start([this, manifest = std::move(manifest)]() mutable {
    try {
      const auto place = folder_->checkpoint_path(manifest.progress);
      const std::size_t bytes =
          write_checkpoint(place, snapshot_, *run_.program, *run_.plan, manifest, setup_.content);
      folder_->prune(setup_.keep);
      log::debug("checkpoint {}: {}", place.string(), format_bytes(static_cast<double>(bytes)));
      std::lock_guard lock(mutex_);
      failure_ = nullptr;
      ++written_;
      bytes_ = bytes;
    } catch (const std::exception& error) {
      log::warning("the checkpoint after step {} could not be written: {}", manifest.progress.step,
                   error.what());
      std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      ++failed_;
    }
  });
}

// However slow the disk is, no rank may take the others' patience for a stall: rank 0 says in time
// that it still writes.
void CheckpointManager::wait_for_writer() {
  for (std::uint8_t done = 0; done == 0;) {
    if (is_first()) done = background_.is_done_within(kPatience) ? 1 : 0;
    run_.communicator->broadcast(&done, sizeof done, 0);
  }
  background_.wait();
}

void CheckpointManager::settle() {
  wait_for_writer();
  {
    std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }
  run_.communicator->barrier();
}

void CheckpointManager::save_model(TrainingProgress progress) {
  if (taken_step_ != progress.step) take_down(progress);
  if (is_first() && !setup_.run.empty()) {
    CheckpointManifest manifest = make_manifest(progress);
    const auto folder = setup_.run / kModel;
    make_folder(setup_.run);
    write_checkpoint(folder, snapshot_, *run_.program, *run_.plan, manifest,
                     CheckpointContent::model);
    notify("model: " + folder.string());
  }
  run_.communicator->barrier();
}

CheckpointFacts CheckpointManager::times() const {
  CheckpointFacts times = times_;
  times.written = static_cast<std::int64_t>(written_);
  times.failed = static_cast<std::int64_t>(failed_);
  times.bytes = static_cast<std::int64_t>(bytes_);
  times.background_seconds = background_.seconds();
  return times;
}

PendingRequests RankVote::ask(std::size_t step, PendingRequests mine) {
  const double now = now_seconds();
  Answer answer{mine};
  if (last_time_ > 0 && step > last_step_) {
    answer.seconds_per_step = (now - last_time_) / static_cast<double>(step - last_step_);
  }
  PendingRequests all;
  double slowest = 0;
  for (const Answer& one : gather(communicator_, answer)) {
    all.stop = all.stop || one.asked.stop;
    all.save = all.save || one.asked.save;
    slowest = std::max(slowest, one.seconds_per_step);
  }
  const auto most = static_cast<double>(kGrowth * std::max<std::size_t>(1, step - last_step_));
  const double steps = slowest > 0 ? std::clamp(kSeconds / slowest, 1.0, most) : 1;
  next_ = step + static_cast<std::size_t>(steps);
  last_step_ = step;
  last_time_ = now_seconds();
  return all;
}

}  // namespace paceline
