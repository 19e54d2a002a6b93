#include "run/why/working_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/child.h"
#include "engine/core/environment.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/launch/topology.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

bool is_virtual_environment(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "pyvenv.cfg", ignored);
}

class Copying {
 public:
  explicit Copying(const WorkingCopy& copy) : copy_(copy) {}

  double bytes_below(const fs::path& folder) const {
    double bytes = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (copy_.left_out.contains(entry.path()) || is_linked(entry)) continue;
      if (entry.is_symlink()) continue;
      if (entry.is_directory()) {
        bytes += bytes_below(entry.path());
      } else if (entry.is_regular_file()) {
        bytes += static_cast<double>(entry.file_size());
      }
    }
    return bytes;
  }

  // All but `part`, which the copy has. Some folders above may be closed to this user.
  void link_entries(const fs::path& from, const fs::path& to, const fs::path& part) const {
    std::error_code closed;
    for (fs::directory_iterator entry(from, closed), end; entry != end; entry.increment(closed)) {
      const fs::path name = entry->path().filename();
      if (name == part || copy_.left_out.contains(entry->path())) continue;
      fs::create_symlink(entry->path(), to / name);
    }
  }

  void copy_folder(const fs::path& from, const fs::path& to) const {
    fs::create_directory(to, from);
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
      const fs::path target = to / entry.path().filename();
      if (copy_.left_out.contains(entry.path())) continue;
      if (is_linked(entry)) {
        fs::create_symlink(entry.path(), target);
      } else if (entry.is_symlink()) {
        fs::create_symlink(link_from_copy(entry.path()), target);
      } else if (entry.is_directory()) {
        copy_folder(entry.path(), target);
      } else if (entry.is_regular_file()) {
        fs::copy_file(entry.path(), target);
        fs::last_write_time(target, entry.last_write_time());
      }
    }
  }

 private:
  bool is_linked(const fs::directory_entry& entry) const {
    return copy_.linked.contains(entry.path()) ||
           (!entry.is_symlink() && entry.is_directory() && is_virtual_environment(entry.path()));
  }

  // A link inside of the folder stays as it is, or leads to the copy of what it led to.
  fs::path link_from_copy(const fs::path& link) const {
    const fs::path text = fs::read_symlink(link);
    const fs::path led_to = (link.parent_path() / text).lexically_normal();
    const fs::path inside = led_to.lexically_relative(copy_.from);
    if (inside.empty() || *inside.begin() == "..") return led_to;
    return text.is_absolute() ? copy_.to() / inside : text;
  }

  const WorkingCopy& copy_;
};

// Of the kernel's interface; headers of older systems lack the later ones.
constexpr std::uint64_t kWriteFile = 1U << 1, kRefer = 1U << 13, kTruncate = 1U << 14;
constexpr std::uint64_t kRemoveAndMake = 0x1ff0;  // bits 4 to 12

long landlock_version() {
  return syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

// Ruled out elsewhere for this process and all that it starts.
void hold_writes(const std::vector<std::string>& allowed) {
  const long version = landlock_version();
  if (version < 1) return;
  landlock_ruleset_attr rules{};
  rules.handled_access_fs =
      kWriteFile | kRemoveAndMake | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
  const Descriptor ruleset(static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &rules, sizeof rules.handled_access_fs, 0)));
  bool is_held = static_cast<bool>(ruleset);
  for (const std::string& folder : allowed) {
    const Descriptor place(open(folder.c_str(), O_PATH | O_CLOEXEC));
    if (!place) continue;
    landlock_path_beneath_attr rule{};
    rule.allowed_access = rules.handled_access_fs;
    rule.parent_fd = place.number();
    is_held = is_held && syscall(SYS_landlock_add_rule, ruleset.number(),
                                 LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  }
  is_held = is_held && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
            syscall(SYS_landlock_restrict_self, ruleset.number(), 0) == 0;
  if (is_held) return;
  throw input_error(
      fmt::format("writes outside of the copy cannot be refused: {}", std::strerror(errno)), "",
      "let the program write with --writes-ok");
}

void set_variable(const std::string& name, const std::string& value) {
  setenv(name.c_str(), value.c_str(), 1);
}

// Caches hold what can be made again.
std::vector<std::string> writable_places(const WhyLaunch& launch, const std::string& out) {
  const Environment environment = environment_of_process();
  const fs::path home = environment_value(environment, "HOME");
  const std::string cache = environment_value(environment, "XDG_CACHE_HOME");
  std::vector<std::string> places = {launch.scratch.string(), out, "/dev", "/proc"};
  if (!home.empty()) {
    places.push_back(cache.empty() ? (home / ".cache").string() : cache);
    places.push_back((home / ".triton").string());
  }
  return places;
}

void switch_trackers_off(const fs::path& scratch) {
  for (const auto& [name, value] : {std::pair{"WANDB_MODE", "disabled"},
                                    {"COMET_MODE", "disabled"},
                                    {"NEPTUNE_MODE", "debug"},
                                    {"CLEARML_OFFLINE_MODE", "1"},
                                    {"HF_HUB_OFFLINE", "1"}}) {
    set_variable(name, value);
  }
  set_variable("MLFLOW_TRACKING_URI", "file://" + (scratch / "mlruns").string());
}

// Paths of the folder in the program's arguments, as $PWD/train.py, lead into the copy.
std::vector<std::string> words_in_copy(const WorkingCopy& copy, std::vector<std::string> words) {
  const std::string from = copy.from.string() + "/";
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string& word = words[i];
    const std::size_t at = word.starts_with(from) ? 0 : word.find("=" + from) + 1;
    if (at > 0 || word.starts_with(from)) word.replace(at, from.size(), copy.to().string() + "/");
  }
  return words;
}

WhyLaunch read_launch(const fs::path& file) {
  const Json json = parse_json(read_text(file));
  const auto paths = [&](const char* key) {
    std::set<fs::path> all;
    for (const Json& each : json.at(key)) all.insert(each.get<std::string>());
    return all;
  };
  WhyLaunch launch;
  launch.copy = {json.at("from").get<std::string>(), json.at("root").get<std::string>(),
                 paths("linked"), paths("left_out")};
  launch.hook = json.at("hook").get<std::string>();
  launch.scratch = json.at("scratch").get<std::string>();
  launch.writes_ok = json.at("writes_ok");
  launch.cpus = json.at("cpus").get<std::vector<int>>();
  launch.settings = json.at("settings").get<std::string>();
  return launch;
}

}  // namespace

void WorkingCopy::check_size() const {
  const Copying copying(*this);
  const double bytes = copying.bytes_below(from);
  if (bytes <= kMostCopied) return;
  double most = 0;
  fs::path largest;
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    if (linked.contains(entry.path()) || entry.is_symlink()) continue;
    const double size = entry.is_directory()      ? copying.bytes_below(entry.path())
                        : entry.is_regular_file() ? static_cast<double>(entry.file_size())
                                                  : 0;
    if (size > most) most = size, largest = entry.path().filename();
  }
  throw input_error(
      fmt::format("runs happen in a copy of this folder, which has {}, more than {}; the "
                  "largest entry is {}, {}",
                  format_bytes(bytes), format_bytes(kMostCopied), largest.string(),
                  format_bytes(most)),
      from.string(),
      "name what is only read with --link, as --link " + shell_quote(largest.string()));
}

void WorkingCopy::make() const {
  const Copying copying(*this);
  fs::remove_all(root);
  fs::create_directory(root);
  fs::path above = "/", to = root;
  for (const fs::path& part : from.relative_path()) {
    copying.link_entries(above, to, part);
    above /= part;
    to /= part;
    fs::create_directory(to);
  }
  copying.copy_folder(from, to);
}

void save_launch(const fs::path& file, const WhyLaunch& launch) {
  const auto texts = [](const std::set<fs::path>& paths) {
    Json all = Json::array();
    for (const fs::path& each : paths) all.push_back(each.string());
    return all;
  };
  const Json json = {
      {"from", launch.copy.from.string()},   {"root", launch.copy.root.string()},
      {"linked", texts(launch.copy.linked)}, {"left_out", texts(launch.copy.left_out)},
      {"hook", launch.hook.string()},        {"scratch", launch.scratch.string()},
      {"writes_ok", launch.writes_ok},       {"cpus", launch.cpus},
      {"settings", launch.settings}};
  replace_file(file, json_text(json));
}

bool can_hold_writes() {
  return landlock_version() >= 1;
}

void become_in_copy(const fs::path& launch_file, const std::vector<std::string>& command) {
  const WhyLaunch launch = read_launch(launch_file);
  const Environment environment = environment_of_process();
  Json settings = parse_json(launch.settings);
  settings.update(parse_json(environment_value(environment, kHookVariable)));
  launch.copy.make();
  fs::remove_all(launch.scratch / "tmp");  // a file store or a checkpoint of the run before
  fs::create_directories(launch.scratch / "tmp");
  settings["writable"] = nullptr;
  if (!launch.writes_ok) {
    const auto places = writable_places(launch, settings.at("out").get<std::string>());
    settings["writable"] = places;
    hold_writes(places);
  }
  // As the user's shell would start it, not as a point of a study is.
  bind_this_thread({launch.cpus.begin(), launch.cpus.end()});
  const Json& threads = settings.at("omp_num_threads");
  if (threads.is_null()) {
    unsetenv("OMP_NUM_THREADS");
  } else {
    set_variable("OMP_NUM_THREADS", threads.get<std::string>());
  }
  const std::string paths = environment_value(environment, "PYTHONPATH");
  // Python's caches beside modules elsewhere would be refused as writes of the program.
  set_variable("PYTHONDONTWRITEBYTECODE", "1");
  set_variable("PYTHONPATH", launch.hook.string() + (paths.empty() ? "" : ":" + paths));
  set_variable("TMPDIR", (launch.scratch / "tmp").string());
  if (environment_value(environment, "TORCHINDUCTOR_CACHE_DIR").empty()) {
    set_variable("TORCHINDUCTOR_CACHE_DIR", (launch.scratch / "compiled").string());
  }
  set_variable(kHookVariable, json_text(settings));
  switch_trackers_off(launch.scratch);
  unsetenv(kLaunchVariable);
  if (chdir(launch.copy.to().c_str()) != 0) {
    throw input_error(fmt::format("the copy cannot be entered: {}", std::strerror(errno)),
                      launch.copy.to().string(), "make room in TMPDIR");
  }
  set_variable("PWD", launch.copy.to().string());
  const std::vector<std::string> words = words_in_copy(launch.copy, command);
  execvp(words.front().c_str(), as_arguments(words).data());
  throw input_error(fmt::format("the program cannot be started: {}", std::strerror(errno)),
                    command.front(), "check the command");
}

}  // namespace paceline
