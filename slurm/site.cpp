#include "slurm/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/json_field.h"
#include "engine/core/text.h"
#include "results/names.h"
#include "results/schema.h"
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
         std::ranges::all_of(
             name, [](unsigned char c) { return c == '_' || (c < 128 && std::isalnum(c)); });
}

// What Slurm's own options are made of: what stands in an #SBATCH line must not end it or begin
// another word of it.
bool is_option_value(std::string_view text) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [](unsigned char c) {
    return (c < 128 && std::isalnum(c)) ||
           std::string_view("_-.,:+@&|*=()[]/").find(static_cast<char>(c)) !=
               std::string_view::npos;
  });
}

// Lines of a script are made of these: a line break would begin another.
const std::string& line(const JsonField& field) {
  const std::string& text = field.text();
  const bool plain = std::ranges::none_of(text, [](unsigned char c) { return c < 32 || c == 127; });
  if (!plain || text.size() > kMaxText) {
    field.fail(fmt::format("{} must be one line of at most {} bytes", field.key(), kMaxText),
               "remove line breaks and control characters");
  }
  return text;
}

std::string line_schema() {
  return text_schema(R"([\x00-\x1f\x7f])", kMaxText);
}
std::string variable_schema() {
  return text_schema("^[0-9]|[^A-Za-z0-9_]", kMaxText);
}

JsonFieldReader line_into(std::string& target) {
  return {[&target](const JsonField& field) { target = line(field); }, line_schema()};
}

JsonFieldReader option_into(std::string& target) {
  const auto read = [&target](const JsonField& field) {
    target = line(field);
    if (is_option_value(target)) return;
    field.fail(fmt::format("{} cannot be \"{}\"", field.key(), target),
               "use letters, digits and _ - . , : + @ & | * = ( ) [ ] /");
  };
  return {read, text_schema(R"(^-|[^A-Za-z0-9_.,:+@&|*=()\[\]/-])", kMaxText)};
}

// Each line begins with one of `starts`, if there are any.
JsonFieldReader lines_into(std::vector<std::string>& target, std::vector<std::string> starts = {}) {
  Json element = Json::parse(line_schema());
  if (!starts.empty()) element["pattern"] = "^(" + join(starts, "|") + ")";
  const auto read = [&target, starts = std::move(starts)](const JsonField& field) {
    target.clear();
    for (const JsonField& element : field.elements()) {
      const std::string& text = target.emplace_back(line(element));
      const auto begins = [&](const std::string& start) { return text.starts_with(start); };
      if (starts.empty() || std::ranges::any_of(starts, begins)) continue;
      element.fail(fmt::format("\"{}\" must begin with {}", text, join(starts, "or ")),
                   "shell lines belong in \"setup\"");
    }
  };
  return {read, list_schema(json_text(element))};
}

void check_variable(const std::string& name, const JsonField& field) {
  if (is_variable_name(name)) return;
  field.fail(fmt::format("\"{}\" is not a variable name", name),
             "use letters, digits and _, and no digit first");
}

JsonFieldReader variables_into(std::vector<std::string>& target) {
  const auto read = [&target](const JsonField& field) {
    for (const JsonField& element : field.elements()) {
      check_variable(target.emplace_back(line(element)), element);
    }
  };
  return {read, list_schema(variable_schema())};
}

JsonFieldReader environment_into(std::map<std::string, std::string>& target) {
  const auto read = [&target](const JsonField& field) {
    for (const JsonField& member : field.members()) {
      check_variable(member.key(), member);
      target[member.key()] = line(member);
    }
  };
  return {read,
          fmt::format(R"({{"type": "object", "propertyNames": {}, "additionalProperties": {}}})",
                      variable_schema(), line_schema())};
}

JsonFieldReader device_into(std::string& target) {
  const auto read = [&target](const JsonField& field) {
    target = line(field);
    find_name("device", target, field.where());
  };
  return {read, json_text(parameter_schema(*find_parameter("device")))};
}

JsonFieldReaders node_readers(Machine& node, double& memory_gb) {
  return {{"cpu", line_into(node.cpu_model)},
          {"cpus", into(node.cpus, 1, 100000)},
          {"memory_gb", into(memory_gb, 0.1, 1e6)},
          {"gpu", line_into(node.gpu)}};
}

JsonFieldReader node_into(std::optional<Machine>& target) {
  const auto read = [&target](const JsonField& field) {
    Machine& node = target.emplace();
    double memory_gb = 0;
    field.read(node_readers(node, memory_gb));
    node.memory_bytes = memory_gb * 1e9;
  };
  Machine any;
  double any_gb = 0;
  return {read, object_schema(node_readers(any, any_gb))};
}

JsonFieldReaders site_readers(Site& site) {
  const JsonFieldReaders gpus = {{"form", into(site.gpu_form, kGpuForms)},
                                 {"type", option_into(site.gpu_type)}};
  const JsonFieldReaders memory = {{"form", into(site.memory_form, kMemoryForms)},
                                   {"gb_per_replica", into(site.gb_per_replica, 0.1, 100000)},
                                   {"gb_per_cpu", into(site.gb_per_cpu, 1, 100000)}};
  const JsonFieldReaders time = {{"minutes", into(site.minutes, 1, 100000)},
                                 {"margin", into(site.margin, 1, 100)},
                                 {"most_minutes", into(site.most_minutes, 1, 100000)},
                                 {"signal_seconds", into(site.signal_seconds, 0, 65535)}};
  const JsonFieldReaders array = {{"throttle", into(site.throttle, 1, 1000000)},
                                  {"max_size", into(site.max_array_size, 2, 10000000)},
                                  {"max_submit", into(site.max_submit, 1, 10000000)}};
  const JsonFieldReaders modules = {{"purge", into(site.module_purge)},
                                    {"load", lines_into(site.modules)}};
  const JsonFieldReaders container = {{"on", into(site.container.on)},
                                      {"command", line_into(site.container.command)},
                                      {"image", line_into(site.container.image)},
                                      {"edf", line_into(site.container.edf)},
                                      {"nv", into(site.container.nv)},
                                      {"overlays", lines_into(site.container.overlays)},
                                      {"binds", lines_into(site.container.binds)},
                                      {"cache", line_into(site.container.cache)}};
  return {{"name", line_into(site.name)},
          {"description", line_into(site.description)},
          {"account", option_into(site.account)},
          {"partition", option_into(site.partition)},
          {"qos", option_into(site.qos)},
          {"constraint", option_into(site.constraint)},
          {"hint", option_into(site.hint)},
          {"exclusive", into(site.exclusive)},
          {"ntasks_per_node", into(site.ntasks_per_node)},
          {"error_file", into(site.error_file)},
          {"gpus", into(gpus)},
          {"memory", into(memory)},
          {"time", into(time)},
          {"array", into(array)},
          {"burst_buffer", lines_into(site.burst_buffer, {"#BB ", "#DW "})},
          {"extra", lines_into(site.extra, {"#SBATCH "})},
          {"requeue", into(site.requeue)},
          {"device", device_into(site.device)},
          {"cores_per_node", into(site.cores_per_node, 1, 100000)},
          {"cpus_per_node", into(site.cpus_per_node, 1, 100000)},
          {"gpus_per_node", into(site.gpus_per_node, 1, 1000)},
          {"most_cpus_per_gpu", into(site.most_cpus_per_gpu, 1, 1000)},
          {"node", node_into(site.node)},
          {"reference", into(site.reference)},
          {"modules", into(modules)},
          {"environment", environment_into(site.environment)},
          {"unset", variables_into(site.unset)},
          {"setup", lines_into(site.setup)},
          {"data", line_into(site.data)},
          {"stage", line_into(site.stage)},
          {"program", line_into(site.program)},
          {"launcher", into(site.launcher, kLaunchers)},
          {"launcher_options", lines_into(site.launcher_options)},
          {"container", into(container)}};
}

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

Site parse_site(const std::string& name, std::string_view text) {
  const JsonDocument document(name, without_comments(text));
  const JsonField root(document, "see slurm/README.md");
  Site site;
  site.where = name;
  root.read(site_readers(site));
  root.at("name");
  if (site.launcher == JobLauncher::mpirun && !root.find("launcher_options")) {
    site.launcher_options.clear();  // srun's
  }
  const SiteContainer& container = site.container;
  if (container.on && container.image.empty() == container.edf.empty()) {
    root.at("container")
        .fail(container.edf.empty() ? "the container has no image"
                                    : "the container has image and edf",
              "add \"image\" (or \"edf\" of srun's --environment), or \"on\": false");
  }
  if (!container.edf.empty() && !container.is_of_srun()) {
    root.at("container").fail("edf is of srun's containers", "add \"command\": \"srun\"");
  }
  if (container.is_of_srun() && site.launcher != JobLauncher::srun) {
    root.at("container").fail("srun's containers need launcher srun", "leave \"launcher\" out");
  }
  const bool has_others = !container.overlays.empty() || !container.cache.empty() ||
                          (!container.edf.empty() && !container.binds.empty());
  if (container.is_of_srun() && has_others) {
    root.at("container")
        .fail(fmt::format("srun's containers have no {}", container.edf.empty()
                                                              ? "overlays and no cache"
                                                              : "overlays, binds and cache"),
              "leave them out");
  }
  return site;
}

std::string site_schema() {
  Site any;
  Json schema = Json::parse(object_schema(site_readers(any)));
  schema["required"] = {"name"};
  // As parse_site() checks containers.
  Json& container = schema["properties"]["container"];
  container["allOf"] = Json::parse(R"([
    {"if": {"properties": {"on": {"const": true}}, "required": ["on"]},
     "then": {"oneOf": [{"required": ["image"]}, {"required": ["edf"]}]}},
    {"if": {"required": ["edf"]},
     "then": {"properties": {"command": {"const": "srun"}, "binds": {"maxItems": 0}}, "required": ["command"]}},
    {"if": {"properties": {"command": {"const": "srun"}}, "required": ["command"]},
     "then": {"properties": {"overlays": {"maxItems": 0}, "cache": false}}}])");
  schema["if"] =
      Json::parse(R"({"properties": {"launcher": {"const": "mpirun"}}, "required": ["launcher"]})");
  schema["then"] = Json::parse(
      R"({"properties": {"container": {"properties": {"command": {"not": {"const": "srun"}}}}}})");
  return schema_document("Site profile of Paceline", schema);
}

Site read_site(const std::filesystem::path& file) {
  const std::filesystem::path found = find_shipped(file, "slurm/sites");
  return parse_site(found.string(), read_text(found, kMaxSiteBytes));
}

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

void refuse_placeholders(const Site& site) {
  const std::vector<std::string> placeholders = list_placeholders(site);
  if (placeholders.empty()) return;
  throw usage_error(join(placeholders, ", "), site.where, "replace each with your centre's value");
}

std::string_view to_string(GpuForm form) {
  return name_in(kGpuForms, form);
}

}  // namespace paceline
