#include "engine/core/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <system_error>

#include "engine/core/error.h"
#include "engine/core/file.h"

#ifndef PACELINE_CUDA_LIBRARY_FOLDER
#define PACELINE_CUDA_LIBRARY_FOLDER ""
#endif

namespace paceline {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names,
                             const std::vector<std::filesystem::path>& folders) {
  const auto open = [&](const std::string& path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle_) {
      path_ = path;
    } else if (problem_.empty()) {
      problem_ = dlerror();
    }
    return handle_ != nullptr;
  };
  std::error_code ignored;
  for (const std::filesystem::path& folder : folders) {
    for (const std::string& name : names) {
      if (std::filesystem::exists(folder / name, ignored) && open((folder / name).string())) return;
    }
  }
  for (const std::string& name : names) {
    if (open(name)) return;
  }
}

SharedLibrary::Symbol SharedLibrary::optional(const char* name, const char* older) const {
  if (!handle_) return {nullptr};
  void* const found = dlsym(handle_, name);
  return {found ? found : dlsym(handle_, older)};
}

SharedLibrary::Symbol SharedLibrary::function(const char* name) const {
  const Symbol found = optional(name);
  if (!found.address) {
    throw usage_error(std::string("the library has no function ") + name,
                      handle_ ? path_ : problem_, "install the version that the README names");
  }
  return found;
}

std::vector<std::filesystem::path> gpu_library_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* named = std::getenv("PACELINE_CUDA_LIBS")) {
    std::string_view rest = named;
    while (!rest.empty()) {
      const std::size_t colon = rest.find(':');
      if (colon != 0) folders.emplace_back(rest.substr(0, colon));
      rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    }
  }
  const auto program = program_file();
  if (!program.empty()) folders.push_back(program.parent_path().parent_path() / "lib");
  const std::string_view toolkit = PACELINE_CUDA_LIBRARY_FOLDER;
  if (!toolkit.empty()) folders.emplace_back(toolkit);
  return folders;
}

}  // namespace paceline
