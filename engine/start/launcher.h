// The machine's mpirun, and how to make it leave mapping and binding to Paceline.
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

LauncherMake identify_launcher(const std::string& version_text);

// The complete command. The launcher does not bind ranks: each rank binds itself to its part of the
// launcher's mask. Throws usage for an unknown launcher.
std::vector<std::string> launch_command(const Launcher& launcher, int ranks,
                                        const std::vector<std::string>& command);

// Sets the environment variables that the launcher needs, also when run as root.
void prepare_environment(const Launcher& launcher, Environment& environment);

}  // namespace paceline
