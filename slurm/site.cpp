#include "slurm/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "results/shipped.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxSiteBytes = 1 << 20;
constexpr std::size_t kMaxText = 4000;

constexpr EnumName<GpuForm> kGpuForms[] = {{GpuForm::none, "none"},
                                           {GpuForm::gres, "gres"},
                                           {GpuForm::gpus, "gpus"},
                                           {GpuForm::gpus_per_task, "gpus-per-task"},
                                           {GpuForm::gpus_per_node, "gpus-per-node"}};
constexpr EnumName<MemoryForm> kMemoryForms[] = {{MemoryForm::none, "none"},
                                                 {MemoryForm::mem, "mem"},
                                                 {MemoryForm::mem_per_cpu, "mem-per-cpu"},
                                                 {MemoryForm::mem_per_gpu, "mem-per-gpu"}};
constexpr EnumName<JobLauncher> kLaunchers[] = {{JobLauncher::srun, "srun"},
                                                {JobLauncher::mpirun, "mpirun"}};

bool is_variable_name(std::string_view name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name.front())) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c == '_' || (c < 128 && std::isalnum(c)); });
}

// What Slurm's own options are made of: what stands in an #SBATCH line must not end it or begin
// another word of it.
bool is_option_value(std::string_view text) {
  return !text.empty() && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (c < 128 && std::isalnum(c)) ||
                  std::string_view("_-.,:+@&|*=()[]/").find(static_cast<char>(c)) !=
                      std::string_view::npos;
         });
}

class SiteReader {
 public:
  explicit SiteReader(const JsonDocument& document) : document_(document) {}

  Site read() {
    site_.where = document_.name();
    read_object(document_.value(), "", top_keys());
    if (site_.name.empty()) fail("\"name\" is missing", "", "add it");
    if (site_.launcher == JobLauncher::mpirun && !document_.value().contains("launcher_options")) {
      site_.launcher_options.clear();  // srun's
    }
    if (site_.container.on && site_.container.image.empty()) {
      fail("the container has no image", "/container", "add \"image\", or \"on\": false");
    }
    return std::move(site_);
  }

 private:
  using KeyReader = std::function<void(const Json&, const std::string&)>;
  using Keys = std::vector<std::pair<std::string, KeyReader>>;

  [[noreturn]] void fail(const std::string& what, const std::string& path,
                         const std::string& fix = "see slurm/README.md") const {
    throw Error(ErrorKind::input, what, document_.where(path), fix);
  }

  static std::string below(const std::string& path, const std::string& key) {
    return fmt::format("{}/{}", path, key);
  }
  static std::string make_key(const std::string& path) { return path.substr(path.rfind('/') + 1); }

  void read_object(const Json& object, const std::string& path, const Keys& keys) const {
    if (!object.is_object()) {
      fail(path.empty() ? "a site profile is a JSON object" : make_key(path) + " must be an object",
           path, "put it in { }");
    }
    for (const auto& [key, value] : object.items()) {
      const auto known = std::find_if(keys.begin(), keys.end(), [&name = key](const auto& entry) {
        return entry.first == name;
      });
      if (known == keys.end()) {
        std::vector<std::string> names;
        for (const auto& entry : keys) names.push_back(entry.first);
        fail(fmt::format("unknown key \"{}\"", key), below(path, key), suggestion(key, names));
      }
      known->second(value, below(path, key));
    }
  }

  Keys top_keys() {
    return {{"name", text_into(site_.name)},
            {"description", text_into(site_.description)},
            {"account", option_into(site_.account)},
            {"partition", option_into(site_.partition)},
            {"qos", option_into(site_.qos)},
            {"constraint", option_into(site_.constraint)},
            {"hint", option_into(site_.hint)},
            {"exclusive", flag_into(site_.exclusive)},
            {"ntasks_per_node", flag_into(site_.ntasks_per_node)},
            {"error_file", flag_into(site_.error_file)},
            {"gpus", section(gpu_keys())},
            {"memory", section(memory_keys())},
            {"time", section(time_keys())},
            {"array", section(array_keys())},
            {"burst_buffer", lines_into(site_.burst_buffer, {"#BB ", "#DW "})},
            {"extra", lines_into(site_.extra, {"#SBATCH "})},
            {"requeue", flag_into(site_.requeue)},
            {"device", device()},
            {"cores_per_node", whole_into(site_.cores_per_node, 1, 100000)},
            {"cpus_per_node", whole_into(site_.cpus_per_node, 1, 100000)},
            {"gpus_per_node", whole_into(site_.gpus_per_node, 1, 1000)},
            {"node", node()},
            {"reference", flag_into(site_.reference)},
            {"modules", section(module_keys())},
            {"environment", environment()},
            {"unset", variables_into(site_.unset)},
            {"setup", lines_into(site_.setup, {""})},
            {"data", text_into(site_.data)},
            {"stage", text_into(site_.stage)},
            {"program", text_into(site_.program)},
            {"launcher", choice_into(site_.launcher, kLaunchers)},
            {"launcher_options", texts_into(site_.launcher_options)},
            {"container", section(container_keys())}};
  }

  Keys gpu_keys() {
    return {{"form", choice_into(site_.gpu_form, kGpuForms)},
            {"type", option_into(site_.gpu_type)}};
  }

  Keys memory_keys() {
    return {{"form", choice_into(site_.memory_form, kMemoryForms)},
            {"gb_per_replica", real_into(site_.gb_per_replica, 0.1, 100000)},
            {"gb_per_cpu", whole_into(site_.gb_per_cpu, 1, 100000)}};
  }

  Keys time_keys() {
    return {{"minutes", whole_into(site_.minutes, 1, 100000)},
            {"margin", real_into(site_.margin, 1, 100)},
            {"most_minutes", whole_into(site_.most_minutes, 1, 100000)},
            {"signal_seconds", whole_into(site_.signal_seconds, 0, 65535)}};
  }

  Keys array_keys() {
    return {{"throttle", whole_into(site_.throttle, 1, 1000000)},
            {"max_size", whole_into(site_.max_array_size, 2, 10000000)},
            {"max_submit", whole_into(site_.max_submit, 1, 10000000)}};
  }

  Keys module_keys() {
    return {{"purge", flag_into(site_.module_purge)}, {"load", texts_into(site_.modules)}};
  }

  Keys container_keys() {
    SiteContainer& container = site_.container;
    return {{"on", flag_into(container.on)},
            {"command", text_into(container.command)},
            {"image", text_into(container.image)},
            {"nv", flag_into(container.nv)},
            {"overlays", texts_into(container.overlays)},
            {"binds", texts_into(container.binds)},
            {"cache", text_into(container.cache)}};
  }

  KeyReader node() {
    return [this](const Json& value, const std::string& path) {
      Machine& node = site_.node.emplace();
      double memory_gb = 0;
      read_object(value, path,
                  {{"cpu", text_into(node.cpu_model)},
                   {"cpus", whole_into(node.cpus, 1, 100000)},
                   {"memory_gb", real_into(memory_gb, 0.1, 1e6)},
                   {"gpu", text_into(node.gpu)}});
      node.memory_bytes = memory_gb * 1e9;
    };
  }

  KeyReader section(Keys keys) const {
    return [this, keys = std::move(keys)](const Json& value, const std::string& path) {
      read_object(value, path, keys);
    };
  }

  // Lines of a script are made of these: a line break would begin another.
  std::string text(const Json& value, const std::string& path) const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      fail(fmt::format("{} must be a text", make_key(path)), path, "write it in quotes");
    }
    const auto& text = value.get_ref<const std::string&>();
    const bool plain =
        std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 32 || c == 127; });
    if (!plain || text.size() > kMaxText) {
      fail(fmt::format("{} must be one line of at most {} bytes", make_key(path), kMaxText), path,
           "remove line breaks and control characters");
    }
    return text;
  }

  std::vector<std::string> texts(const Json& value, const std::string& path) const {
    if (!value.is_array())
      fail(fmt::format("{} must be a list", make_key(path)), path, "put it in [ ]");
    std::vector<std::string> result;
    for (std::size_t i = 0; i < value.size(); ++i) {
      result.push_back(text(value[i], fmt::format("{}/{}", path, i)));
    }
    return result;
  }

  KeyReader text_into(std::string& target) const {
    return
        [this, &target](const Json& value, const std::string& path) { target = text(value, path); };
  }

  KeyReader texts_into(std::vector<std::string>& target) const {
    return [this, &target](const Json& value, const std::string& path) {
      target = texts(value, path);
    };
  }

  KeyReader option_into(std::string& target) const {
    return [this, &target](const Json& value, const std::string& path) {
      target = text(value, path);
      if (is_option_value(target)) return;
      fail(fmt::format("{} cannot be \"{}\"", make_key(path), target), path,
           "use letters, digits and _ - . , : + @ & | * = ( ) [ ] /");
    };
  }

  KeyReader lines_into(std::vector<std::string>& target, std::vector<std::string> starts) const {
    return [this, &target, starts = std::move(starts)](const Json& value, const std::string& path) {
      target = texts(value, path);
      for (std::size_t i = 0; i < target.size(); ++i) {
        const bool fine = std::any_of(starts.begin(), starts.end(), [&](const std::string& start) {
          return target[i].starts_with(start);
        });
        if (fine) continue;
        fail(fmt::format("\"{}\" must begin with {}", target[i], join(starts, "or ")),
             fmt::format("{}/{}", path, i), "shell lines belong in \"setup\"");
      }
    };
  }

  KeyReader variables_into(std::vector<std::string>& target) const {
    return [this, &target](const Json& value, const std::string& path) {
      target = texts(value, path);
      for (std::size_t i = 0; i < target.size(); ++i) {
        check_variable(target[i], fmt::format("{}/{}", path, i));
      }
    };
  }

  void check_variable(const std::string& name, const std::string& path) const {
    if (is_variable_name(name)) return;
    fail(fmt::format("\"{}\" is not a variable name", name), path,
         "use letters, digits and _, and no digit first");
  }

  KeyReader environment() {
    return [this](const Json& value, const std::string& path) {
      if (!value.is_object()) fail("environment must be an object", path, "put it in { }");
      for (const auto& [name, text_value] : value.items()) {
        check_variable(name, below(path, name));
        site_.environment[name] = text(text_value, below(path, name));
      }
    };
  }

  KeyReader device() {
    return [this](const Json& value, const std::string& path) {
      site_.device = text(value, path);
      find_name("device", site_.device, document_.where(path));
    };
  }

  KeyReader flag_into(bool& target) const {
    return [this, &target](const Json& value, const std::string& path) {
      if (!value.is_boolean()) {
        fail(fmt::format("{} must be true or false", make_key(path)), path, "give one, unquoted");
      }
      target = value.get<bool>();
    };
  }

  KeyReader whole_into(int& target, int low, int high) const {
    return [this, &target, low, high](const Json& value, const std::string& path) {
      if (!value.is_number_integer() || value.get<double>() < low || value.get<double>() > high) {
        fail(fmt::format("{} must be a whole number from {} to {}", make_key(path), low, high),
             path, "give one, unquoted");
      }
      target = value.get<int>();
    };
  }

  KeyReader real_into(double& target, double low, double high) const {
    return [this, &target, low, high](const Json& value, const std::string& path) {
      if (!value.is_number() || value.get<double>() < low || value.get<double>() > high) {
        fail(fmt::format("{} must be a number from {} to {}", make_key(path), low, high), path,
             "give one, unquoted");
      }
      target = value.get<double>();
    };
  }

  template <typename Kind, std::size_t N>
  KeyReader choice_into(Kind& target, const EnumName<Kind> (&table)[N]) const {
    return [this, &target, &table](const Json& value, const std::string& path) {
      const std::string word = text(value, path);
      if (const auto found = value_in(table, word)) {
        target = *found;
        return;
      }
      std::vector<std::string> names;
      for (const auto& row : table) names.emplace_back(row.name);
      fail(fmt::format("{} cannot be \"{}\"", make_key(path), word), path, suggestion(word, names));
    };
  }

  const JsonDocument& document_;
  Site site_;
};

}  // namespace

Site parse_site(const std::string& name, std::string_view text) {
  const JsonDocument document(name, without_comments(text));
  return SiteReader(document).read();
}

Site read_site(const std::filesystem::path& file) {
  const std::filesystem::path found = find_shipped(file, "slurm/sites");
  return parse_site(found.string(), read_text(found, kMaxSiteBytes));
}

namespace {

// As people and guides write what is to be filled in.
bool is_placeholder(const std::string& text) {
  const std::string lower = to_lower(text);
  return lower == "todo" ||
         std::ranges::any_of(
             std::array{"xxx", "changeme", "change_me", "change-me", "fixme", "your_", "your-",
                        "=todo"},
             [&](const char* word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

std::vector<std::string> list_placeholders(const Site& site) {
  std::vector<std::pair<const char*, std::string>> texts = {
      {"account", site.account},
      {"partition", site.partition},
      {"qos", site.qos},
      {"constraint", site.constraint},
      {"data", site.data},
      {"stage", site.stage},
      {"program", site.program},
      {"gpus.type", site.gpu_type},
      {"container.image", site.container.on ? site.container.image : ""}};
  for (const std::string& line : site.extra) texts.emplace_back("extra", line);
  for (const std::string& line : site.burst_buffer) texts.emplace_back("burst_buffer", line);
  std::vector<std::string> found;
  for (const auto& [key, text] : texts) {
    const auto opened = text.find('<');
    const bool in_brackets =
        opened != std::string::npos && text.find('>', opened) != std::string::npos;
    if (in_brackets || is_placeholder(text)) {
      found.push_back(fmt::format("{} is {}", key, text));
    }
  }
  return found;
}

std::string_view to_string(GpuForm form) {
  return name_in(kGpuForms, form);
}

std::string_view to_string(MemoryForm form) {
  return name_in(kMemoryForms, form);
}

}  // namespace paceline
