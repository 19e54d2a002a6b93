// The mpirun of this machine and how it is told to leave mapping and binding to us.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/launch/process_rank.h"

namespace paceline {

enum class LauncherMake { open_mpi, hydra, unknown };  // hydra: MPICH and Intel MPI

struct Launcher {
  std::filesystem::path program;
  LauncherMake make = LauncherMake::unknown;
  std::string version;  // first line of --version
};

// mpirun, else mpiexec, in PATH.
std::optional<Launcher> find_launcher(const Environment& environment);

LauncherMake make_of(const std::string& version_text);

// The whole command. Ranks are not bound by the launcher: each binds itself to its part of the
// mask that the launcher was started with. Throws usage for an unknown make.
std::vector<std::string> launch_command(const Launcher& launcher, int ranks,
                                        const std::vector<std::string>& command);

// What the launcher needs in its environment, as root also.
void prepare_environment(const Launcher& launcher, Environment& environment);

}  // namespace paceline
