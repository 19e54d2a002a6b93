#include "engine/launch/spawn.h"

#include <unistd.h>

#include "engine/core/child.h"
#include "engine/core/error.h"
#include "engine/core/log.h"
#include "engine/core/text.h"
#include "engine/launch/launcher.h"
#include "engine/launch/noise.h"

namespace paceline {

namespace {

void to_standard_error(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string quoted(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(shell_quote(word));
  return join(words, " ");
}

// A rank's lines of standard error do not mix with another's. What rank 0 says passes at once: its
// progress ends without a line feed.
class Lines {
 public:
  explicit Lines(int ranks) : held_(static_cast<std::size_t>(ranks)) {}

  void feed(std::size_t rank, std::string_view text) {
    if (rank == 0) return to_standard_error(text);
    std::string& held = held_[rank];
    held += text;
    const std::size_t end = held.rfind('\n');
    if (end == std::string::npos) return;
    to_standard_error(std::string_view(held).substr(0, end + 1));
    held.erase(0, end + 1);
  }

  void finish() {
    for (std::string& held : held_) {
      if (!held.empty()) to_standard_error(held + "\n");
    }
  }

 private:
  std::vector<std::string> held_;
};

// Of other launchers in whose job we may be: a rank has one place only.
void forget_launchers(Environment& environment) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PALS_RANKID", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    environment.erase(name);
  }
}

ChildSetup rank_of(const SpawnRequest& request, int rank, const std::string& folder) {
  ChildSetup setup;
  setup.command = request.command;
  setup.environment = request.environment;
  forget_launchers(setup.environment);
  for (const char* name : {"RANK", "LOCAL_RANK"}) setup.environment[name] = std::to_string(rank);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) {
    setup.environment[name] = std::to_string(request.ranks);
  }
  setup.environment[kRunFolderVariable] = folder;
  return setup;
}

}  // namespace

Verdict spawn_direct(const SpawnRequest& request) {
  const RunFolder folder;
  std::vector<ChildSetup> setups;
  for (int rank = 0; rank < request.ranks; ++rank) {
    setups.push_back(rank_of(request, rank, folder.path().string()));
  }
  log::debug("starting {} times {}", request.ranks, quoted(request.command));
  Lines lines(request.ranks);
  const WatchOfMany watch = watch_children(
      setups, [&](std::size_t rank, std::string_view text) { lines.feed(rank, text); });
  lines.finish();
  return judge(read_statuses(folder.path()), watch, request.command.front());
}

Verdict spawn_ranks(const SpawnRequest& request) {
  const auto launcher = find_launcher(request.environment);
  if (!launcher) {
    throw Error(ErrorKind::usage, "no mpirun to start the ranks with", "PATH",
                "install Open MPI (Debian: openmpi-bin; module load openmpi; spack install "
                "openmpi; conda install -c conda-forge openmpi)");
  }
  const RunFolder folder;
  ChildSetup setup;
  setup.command = launch_command(*launcher, request.ranks, request.command);
  setup.environment = request.environment;
  setup.environment[kRunFolderVariable] = folder.path().string();
  prepare_environment(*launcher, setup.environment);
  log::debug("starting {}", quoted(setup.command));

  NoiseFilter filter(to_standard_error);
  const Watch watch = watch_child(setup, [&](std::string_view text) { filter.feed(text); });
  filter.finish();
  return judge(request.ranks, read_statuses(folder.path()), watch, filter.noise());
}

}  // namespace paceline
