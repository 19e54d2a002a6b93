#include "engine/core/program_file.h"

#include <cerrno>
#include <string>
#include <system_error>

namespace paceline {

namespace fs = std::filesystem;

fs::path program_file() {
  std::error_code error;
  fs::path file = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  if (file.filename().string().rfind("ld-", 0) == 0) {
    file = fs::absolute(program_invocation_name, error);
  }
  if (file.parent_path().filename() != "libexec") return file;
  const fs::path starter = file.parent_path().parent_path() / "bin" / file.filename();
  return fs::exists(starter, error) ? starter : file;
}

}  // namespace paceline
