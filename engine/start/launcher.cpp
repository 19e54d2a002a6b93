#include "engine/start/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/failure/rank_status.h"
#include "engine/launch/program.h"

namespace paceline {

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

LauncherMake identify_launcher(const std::string& version_text) {
  for (const char* name : {"Open MPI", "OpenRTE", "PRRTE"}) {
    if (contains(version_text, name)) return LauncherMake::open_mpi;
  }
  for (const char* name : {"HYDRA", "Hydra", "Intel(R) MPI"}) {
    if (contains(version_text, name)) return LauncherMake::hydra;
  }
  return LauncherMake::unknown;
}

std::optional<Launcher> find_launcher(const Environment& environment) {
  for (const char* name : {"mpirun", "mpiexec"}) {
    const auto program = find_program(name, environment);
    if (!program) continue;
    const std::string text = capture_output({program->string(), "--version"});
    const auto lines = split(text, '\n');
    return Launcher{*program, identify_launcher(text),
                    lines.empty() ? "" : std::string(trim(lines.front()))};
  }
  return std::nullopt;
}

std::vector<std::string> launch_command(const Launcher& launcher, int ranks,
                                        const std::vector<std::string>& command) {
  std::vector<std::string> words{launcher.program.string()};
  switch (launcher.make) {
    case LauncherMake::open_mpi:
      for (const char* word : {"--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE", "-x",
                               kStatusFolderVariable, "-x", kStarterVariable}) {
        words.emplace_back(word);
      }
      break;
    case LauncherMake::hydra:
      for (const char* word : {"-bind-to", "none"}) words.emplace_back(word);
      break;
    case LauncherMake::unknown:
      throw Error(ErrorKind::usage,
                  fmt::format("\"{}\" is neither Open MPI nor MPICH", launcher.version),
                  launcher.program.string(),
                  "start the ranks yourself with it, or put another mpirun first in PATH");
  }
  words.emplace_back("-n");
  words.push_back(std::to_string(ranks));
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void prepare_environment(const Launcher& launcher, Environment& environment) {
  // Launchers fail where it is no folder; without it they take /tmp, as this program does.
  std::error_code ignored;
  const auto temporary = environment.find("TMPDIR");
  if (temporary != environment.end() &&
      !std::filesystem::is_directory(temporary->second, ignored)) {
    environment.erase(temporary);
  }
  if (launcher.make != LauncherMake::open_mpi || geteuid() != 0) return;
  environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
  environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
}

}  // namespace paceline
