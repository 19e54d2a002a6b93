#include "run/why/working_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
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
#include "engine/launch/program.h"
#include "engine/launch/topology.h"
#include "results/shipped.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

bool is_virtual_environment(const fs::path& folder) {
  return path_exists(folder / "pyvenv.cfg") || path_exists(folder / "conda-meta");
}

bool is_readable(const fs::directory_entry& entry) {
  const bool is_folder = entry.is_directory() && !entry.is_symlink();
  return access(entry.path().c_str(), is_folder ? R_OK | X_OK : R_OK) == 0;
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

  // `last`: the copy of the run before.
  void copy_folder(const fs::path& from, const fs::path& to, const fs::path& last) const {
    fs::create_directory(to, from);
    fs::permissions(to, fs::perms::owner_all, fs::perm_options::add);
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
      const fs::path name = entry.path().filename(), target = to / name;
      if (copy_.left_out.contains(entry.path())) continue;
      if (is_linked(entry)) {
        fs::create_symlink(entry.path(), target);
      } else if (entry.is_symlink()) {
        fs::create_symlink(link_from_copy(entry.path()), target);
      } else if (entry.is_directory()) {
        copy_folder(entry.path(), target, last / name);
      } else if (entry.is_regular_file()) {
        copy_file(entry, target, last / name);
      }
    }
  }

  // One that the run before left as it was is not copied again. No link may be in its way: what
  // that leads to is not of the copy.
  static void copy_file(const fs::directory_entry& entry, const fs::path& to,
                        const fs::path& last) {
    std::error_code absent;
    if (fs::canonical(last, absent) == last && fs::is_regular_file(last) &&
        fs::hard_link_count(last) == 1 && fs::file_size(last) == entry.file_size() &&
        fs::last_write_time(last) == entry.last_write_time() &&
        fs::status(last).permissions() == entry.status().permissions()) {
      return fs::rename(last, to);
    }
    fs::copy_file(entry.path(), to);
    fs::last_write_time(to, entry.last_write_time());
  }

  // What cannot be read cannot be copied; the program may not read it either.
  bool is_linked(const fs::directory_entry& entry) const {
    if (copy_.linked.contains(entry.path())) return true;
    return !entry.is_symlink() &&
           (!is_readable(entry) || (entry.is_directory() && is_virtual_environment(entry.path())));
  }

 private:
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

// What this kernel can refuse; 0: nothing.
std::uint64_t refusable_access() {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return 0;
  return kWriteFile | kRemoveAndMake | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
}

// Ruled out elsewhere for this process and all that it starts.
void hold_writes(const std::vector<std::string>& allowed) {
  landlock_ruleset_attr rules{};
  rules.handled_access_fs = refusable_access();
  if (rules.handled_access_fs == 0) return;
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

[[noreturn]] void become(const std::vector<std::string>& words) {
  execvp(words.front().c_str(), as_arguments(words).data());
  throw input_error(fmt::format("the program cannot be started: {}", std::strerror(errno)),
                    words.front(), "check the command");
}

void set_variable(const std::string& name, const std::string& value) {
  setenv(name.c_str(), value.c_str(), 1);
}

// Caches hold what can be made again. The program has its own, or one in the scratch folder.
std::vector<std::string> writable_places(const WhyLaunch& launch, const std::string& out) {
  const Environment environment = environment_of_process();
  const fs::path home = environment_value(environment, "HOME");
  std::vector<std::string> places = {launch.scratch.string(), out, "/dev", "/proc"};
  // `usual`: where it is if no variable says it; those of the last two are in the first.
  const auto add = [&](const char* variable, const fs::path& usual, bool is_needed) {
    const std::string set = environment_value(environment, variable);
    const fs::path place = set.empty() ? usual : fs::path(set);
    if (path_exists(place)) return places.push_back(place.string());
    if (is_needed) set_variable(variable, (launch.scratch / "caches" / variable).string());
  };
  add("XDG_CACHE_HOME", home.empty() ? home : home / ".cache", true);
  add("TRITON_CACHE_DIR", home.empty() ? home : home / ".triton/cache", true);
  add("MPLCONFIGDIR", "", true);
  add("NUMBA_CACHE_DIR", "", true);
  add("HF_HOME", "", false);
  add("TORCH_HOME", "", false);
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

// Paths of the folder, as $PWD/train.py and --out=$PWD, lead into the copy.
std::string in_copy(const std::string& from, const std::string& to, std::string text) {
  const auto ends_at = [&](std::size_t at, const char* ends) {
    return at == text.size() || std::strchr(ends, text[at]) != nullptr;
  };
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at)) {
    const bool is_whole =
        (at == 0 || ends_at(at - 1, "=:, \"'")) && ends_at(at + from.size(), "/:, \"'");
    if (is_whole) text.replace(at, from.size(), to);
    at += is_whole ? to.size() : from.size();
  }
  return text;
}

// Of words and of variables, as the folder is called or as the shell calls it.
std::vector<std::string> words_in_copy(const WorkingCopy& copy, std::vector<std::string> words) {
  const Environment environment = environment_of_process();
  const std::string shells = environment_value(environment, "PWD");
  std::error_code ignored;
  std::vector<std::string> names = {copy.from.string()};
  if (shells != names[0] && fs::equivalent(shells, copy.from, ignored)) names.push_back(shells);
  for (const std::string& name : names) {
    const auto replaced = [&](const std::string& text) {
      return in_copy(name, copy.to().string(), text);
    };
    for (std::string& word : words) word = replaced(word);
    for (const auto& [variable, value] : environment_of_process()) {
      if (replaced(value) != value) set_variable(variable, replaced(value));
    }
  }
  return words;
}

}  // namespace

void WorkingCopy::check_size() const {
  const Copying copying(*this);
  const double bytes = copying.bytes_below(from);
  if (bytes <= kMostCopied) return;
  double most = 0;
  fs::path largest;
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    if (copying.is_linked(entry) || entry.is_symlink()) continue;
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

void WorkingCopy::link(const std::string& given) {
  fs::path path = fs::absolute(given).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const fs::path inside = path.lexically_relative(from);
  if (!path_exists(path) || inside.empty() || *inside.begin() == ".." || inside == ".") {
    throw usage_error("there is nothing of that name in this folder", "--link " + given,
                      "name a file or folder below " + from.string());
  }
  linked.insert(path);
}

bool WorkingCopy::is_on_other_storage() const {
  struct stat here, there;
  return stat(from.c_str(), &here) == 0 && stat(root.parent_path().c_str(), &there) == 0 &&
         here.st_dev != there.st_dev;
}

void WorkingCopy::make() const {
  const Copying copying(*this);
  const fs::path last = fs::canonical(root.parent_path()) / "last-copy";
  fs::remove_all(last);
  // There a write through a map does not change a file's time.
  struct statfs storage {};
  const bool is_memory =
      statfs(root.parent_path().c_str(), &storage) == 0 && storage.f_type == TMPFS_MAGIC;
  if (path_exists(root) && !is_memory) fs::rename(root, last);
  fs::remove_all(root);
  fs::create_directory(root);
  fs::path above = "/", to = root;
  for (const fs::path& part : from.relative_path()) {
    copying.link_entries(above, to, part);
    above /= part;
    to /= part;
    fs::create_directory(to);
  }
  copying.copy_folder(from, to, last / from.relative_path());
  fs::remove_all(last);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkingCopy, from, root, linked, left_out)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WhyLaunch, copy, hook, scratch, writes_ok, cpus, settings)

void save_launch(const fs::path& file, const WhyLaunch& launch) {
  replace_file(file, json_text(Json(nlohmann::json(launch))));
}

fs::path place_hook(const fs::path& to) {
  const fs::path shipped = fs::absolute(shipped_path("sweeps/why"));
  if (!path_exists(shipped / "sitecustomize.py")) {
    throw internal_error("the Python hook is not installed", "sweeps/why");
  }
  fs::copy(shipped, to);
  fs::permissions(to / "sitecustomize.py", fs::perms::owner_write, fs::perm_options::add);
  return to;
}

bool can_hold_writes() {
  return refusable_access() != 0;
}

const std::set<std::string>& container_runtimes() {
  static const std::set<std::string> names = {"apptainer", "singularity", "ch-run",
                                              "enroot",    "shifter",     "sarus"};
  return names;
}

bool starts_containers(const std::vector<std::string>& command) {
  return std::ranges::any_of(command, [](const std::string& word) {
    return container_runtimes().contains(fs::path(word).filename().string());
  });
}

void become_in_copy(const fs::path& launch_file, const std::vector<std::string>& command) {
  const auto launch = nlohmann::json(parse_json(read_text(launch_file))).get<WhyLaunch>();
  Json settings = parse_json(launch.settings);
  settings.update(parse_json(environment_value(environment_of_process(), kHookVariable)));
  const std::vector<std::string> words = words_in_copy(launch.copy, command);
  const Environment environment = environment_of_process();
  launch.copy.make();
  fs::remove_all(launch.scratch / "tmp");  // a file store or a checkpoint of the run before
  fs::create_directories(launch.scratch / "tmp");
  settings["writable"] = nullptr;
  if (!launch.writes_ok) {
    const auto places = writable_places(launch, settings.at("out").get<std::string>());
    settings["writable"] = places;
    settings.update({{"landlock", refusable_access()}, {"runtimes", container_runtimes()}});
    if (!starts_containers(command)) hold_writes(places);
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
  become(words);
}

}  // namespace paceline
