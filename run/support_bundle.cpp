#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/launch/program.h"
#include "run/diagnosis.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 200, kMostOfFile = 256 << 10, kMostInAll = 16 << 20;

// Variables that say how a run was started and tuned; others are left out for privacy.
constexpr std::array<std::string_view, 22> kBeginnings = {
    "SLURM_", "OMPI_", "PMIX_",         "PMI_",       "PALS_", "MPICH_", "UCX_",  "FI_",
    "NCCL_",  "CUDA_", "PACELINE_",     "OMP_",       "GOMP_", "KMP_",   "DNNL_", "GLOO_",
    "TORCH",  "LD_",   "LOADEDMODULES", "MODULEPATH", "PATH",  "TMPDIR"};

std::string environment_text() {
  std::string text;
  for (const auto& entry : environment_of_process()) {
    const std::string &name = entry.first, &value = entry.second;
    const bool wanted = std::ranges::any_of(
        kBeginnings, [&](std::string_view begin) { return name.starts_with(begin); });
    if (wanted) text += fmt::format("{}={}\n", name, names_secret(name) ? "[removed]" : value);
  }
  return text;
}

// Empty where there is no such program.
std::string said_by(std::vector<std::string> command, double seconds = 10) {
  const auto program = find_program(command[0], environment_of_process());
  if (!program) return "";
  command[0] = program->string();
  return capture_output(command, seconds);
}

// The beginning of a small file; of a larger one its end, where logs say why.
std::string read_tail(const fs::path& file) {
  std::error_code ignored;
  const std::uintmax_t size = fs::file_size(file, ignored);  // 0 for files of /proc
  const std::uintmax_t skipped = !ignored && size > kMostOfFile ? size - kMostOfFile : 0;
  std::ifstream stream(file, std::ios::binary);
  if (skipped > 0) stream.seekg(static_cast<std::streamoff>(skipped));
  std::string text(kMostOfFile, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return skipped > 0 ? fmt::format("[{} bytes before this]\n{}", skipped, text) : text;
}

bool is_wanted(const fs::path& file) {
  constexpr std::array<std::string_view, 9> kEndings = {
      ".json", ".log", ".sbatch", ".points", ".flight", ".err", ".jsonl", ".csv", ".txt"};
  const std::string ending = file.extension().string();
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

struct Found {
  fs::path file;
  fs::file_time_type time;
};

// The newest first: those of the failure.
std::vector<Found> files_below(const fs::path& folder) {
  std::vector<Found> found;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied,
                                           error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    if (!entries->is_regular_file(ignored) || entries->is_symlink(ignored)) continue;
    if (is_wanted(entries->path()))
      found.push_back({entries->path(), entries->last_write_time(ignored)});
  }
  std::ranges::sort(found, std::ranges::greater{}, &Found::time);
  return found;
}

class Packing {
 public:
  explicit Packing(const fs::path& file) {
    const fs::path folder = file.parent_path();
    std::string name =
        ((folder.empty() ? fs::path(".") : folder) / ".paceline-support-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      throw input_error(fmt::format("the folder cannot be created: {}", std::strerror(errno)),
                        file.string(), "name a file in a folder that you can write");
    }
    place_ = name;
    root_ = place_ / "paceline-support";
  }
  ~Packing() {
    std::error_code ignored;
    fs::remove_all(place_, ignored);
  }
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  void add(const fs::path& name, const std::string& text) {
    if (text.empty() || bytes_ > kMostInAll) return;
    const bool binary = name.extension() == ".flight";  // numbers and labels of collectives
    const std::string content = binary ? text : without_secrets(text);
    make_folder((root_ / name).parent_path());
    replace_file(root_ / name, content);
    bytes_ += content.size();
    ++files_;
  }

  void pack(const fs::path& file) {
    const fs::path packed = place_ / "bundle.tar.gz";
    const std::string said =
        said_by({"tar", "-czf", packed.string(), "-C", place_.string(), "paceline-support"}, 120);
    std::error_code error;
    if (!fs::exists(packed, error)) {
      throw input_error("tar could not pack it: " + std::string(trim(said)), file.string(),
                        "is tar in PATH, and room on the disk?");
    }
    if (!give_name(packed, file)) {
      throw input_error("the file exists already", file.string(), "give another name");
    }
  }

  std::size_t files() const { return files_; }

 private:
  fs::path place_, root_;
  std::size_t bytes_ = 0, files_ = 0;
};

void add_machine(Packing& packing) {
  packing.add("environment.txt", environment_text());
  for (const char* file : {"/proc/version", "/proc/meminfo", "/proc/self/limits",
                           "/proc/self/cgroup", "/proc/self/status", "/etc/os-release"}) {
    packing.add(fs::path("machine") / (fs::path(file).filename().string() + ".txt"),
                read_tail(file));
  }
  const std::vector<std::pair<const char*, std::vector<std::string>>> commands = {
      {"lscpu", {"lscpu"}},
      {"nvidia-smi", {"nvidia-smi"}},
      {"nvidia-topology", {"nvidia-smi", "topo", "-m"}},
      {"srun-mpi", {"srun", "--mpi=list"}},
      {"slurm-version", {"sinfo", "--version"}},
      {"mpirun-version", {"mpirun", "--version"}},
      {"devices", {"ls", "-l", "/sys/class/infiniband", "/sys/class/net"}}};
  for (const auto& [name, command] : commands) {
    packing.add(fs::path("machine") / (std::string(name) + ".txt"), said_by(command));
  }
}

void add_folder(Packing& packing, const fs::path& folder) {
  const auto found = files_below(folder);
  std::string left_out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const fs::path name = found[i].file.lexically_relative(folder);
    if (i < kMostFiles) {
      packing.add(fs::path("about") / name, read_tail(found[i].file));
    } else {
      left_out += name.string() + "\n";
    }
  }
  packing.add("left-out.txt", left_out);
}

}  // namespace

void write_support_bundle(const SupportBundle& bundle, const std::string& doctor_text,
                          const std::string& doctor_json) {
  std::error_code ignored;
  OutputFile(bundle.file, "--bundle", "bundle").check();
  if (!bundle.about.empty() && !fs::is_directory(bundle.about, ignored)) {
    throw input_error("there is no such folder", bundle.about.string(),
                      "name a study's or a run's folder");
  }
  Packing packing(bundle.file);
  packing.add("doctor.txt", doctor_text);
  packing.add("doctor.json", doctor_json);
  add_machine(packing);
  if (!bundle.about.empty()) add_folder(packing, bundle.about);
  packing.pack(bundle.file);
  print(
      "{}: {} files, {}; names of hosts, users and folders are in it, secrets that we know of are "
      "not: "
      "look at it before you send it\n",
      bundle.file.string(), packing.files(),
      format_bytes(static_cast<double>(fs::file_size(bundle.file, ignored))));
}

}  // namespace paceline
