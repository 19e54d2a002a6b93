#include "engine/launch/spawn.h"

#include <unistd.h>

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

}  // namespace

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
