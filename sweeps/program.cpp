#include "sweeps/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "results/run_record.h"
#include "sweeps/spec.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxDefinition = 16 << 10;

// Known when a process starts.
constexpr const char* kOfTheRun[] = {"address", "port", "devices", "out", "repeat", "paceline"};
constexpr const char* kOfAProcess[] = {"rank", "local_rank", "node_rank", "world_size"};
// Follow from a point's parameters.
constexpr const char* kOfThePoint[] = {"ntasks", "tasks_per_node", "gpus_per_node", "gpus_per_task",
                                       "cpus_per_node"};

template <std::size_t N>
bool is_one_of(std::string_view name, const char* const (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

class ProgramReader {
 public:
  ProgramReader(const JsonField& field, std::string folder)
      : field_(field), folder_(std::move(folder)) {}

  UserProgram read(const std::string& name) {
    program_.name = name;
    const auto command = field_.find("command");
    if (!command) {
      field_.fail(fmt::format("program {} has no \"command\"", name), "add one, a list of words");
    }
    if (const auto shell = field_.find("shell")) program_.shell = shell->flag();
    if (const auto processes = field_.find("processes")) {
      program_.processes = processes->choice(split(find_parameter("processes")->values, '|'));
    }
    program_.command = words(*command);
    if (const auto setup = field_.find("setup")) program_.setup = words(*setup);
    read_environment();
    read_directory();
    Json definition = Json::object();
    for (const JsonField& member : field_.members()) {
      const bool is_known = std::ranges::count(program_keys(), member.key()) > 0;
      if (is_known) definition[member.key()] = member.value();
    }
    if (const auto results = field_.find("results")) {
      definition["results"] = read_results(*results);
    }
    if (const auto trace = field_.find("trace")) program_.trace = placeholder_text(*trace, true);
    definition["directory"] = program_.directory;
    program_.definition = json_text(definition);
    if (program_.definition.size() > kMaxDefinition) {
      field_.fail(fmt::format("program {} is longer than {}", name, format_bytes(kMaxDefinition)),
                  "put parts of it into a script");
    }
    return std::move(program_);
  }

 private:
  // Whose placeholders have a value in a run, or after it. May be empty.
  std::string placeholder_text(const JsonField& field, bool is_trace = false) const {
    const std::vector<std::string> known = known_placeholders();
    for (const std::string& name : placeholders_in(text_without_zero(field))) {
      if (std::ranges::find(known, name) == known.end()) {
        field.fail(fmt::format("there is no placeholder {{{}}}", name),
                   suggestion(name, known) + " (to write braces, write {{name}})");
      }
      // Of traces, as many ranks as replicas, whoever starts them.
      if (is_trace && is_one_of(name, kOfAProcess) && name != "rank") {
        field.fail(fmt::format("{{{}}} has no value after the run", name), "use {rank}");
      }
      if (!is_trace && program_.processes == "one" && is_one_of(name, kOfAProcess)) {
        field.fail(fmt::format("{{{}}} differs by process, and there is one", name),
                   "add \"processes\": \"replica\" or \"node\"");
      }
    }
    return text_without_zero(field);
  }

  // A list of words, or with "shell" one text.
  std::vector<std::string> words(const JsonField& field) const {
    if (program_.shell) {
      if (!field.value().is_string()) {
        field.fail(fmt::format("with \"shell\" {} is one text", field.key()),
                   "write it in quotes, or leave shell out");
      }
      if (field.value() == "") field.fail(field.key() + " is empty", "give a command line");
      return {placeholder_text(field)};
    }
    if (field.value().is_string()) {
      field.fail(fmt::format("{} is a list of words, as no shell reads it", field.key()),
                 "write [\"python3\", \"train.py\"], or add \"shell\": true");
    }
    const auto words = field.elements("a list of words");
    if (words.empty() || words.front().value() == "") {
      field.fail(field.key() + " does not begin with a word", "name a program");
    }
    std::vector<std::string> result;
    for (const JsonField& word : words) {
      if (!word.value().is_string()) word.fail("a word must be a text", "write it in quotes");
      result.push_back(placeholder_text(word));
    }
    return result;
  }

  void read_environment() {
    const auto given = field_.find("environment");
    if (!given) return;
    for (const JsonField& variable : given->members("an object of names and texts")) {
      const std::string& name = variable.key();
      if (name.empty() || name.find('=') != std::string::npos) {
        variable.fail(fmt::format("a variable cannot be named \"{}\"", name), "rename it");
      }
      program_.environment.emplace_back(name, placeholder_text(variable));
    }
  }

  void read_directory() {
    namespace fs = std::filesystem;
    fs::path folder = folder_;
    const auto given = field_.find("directory");
    if (given) folder /= text_without_zero(*given);
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) {
      given.value_or(field_).fail(fmt::format("directory {} is not a folder", folder.string()),
                                  "it is relative to the spec's folder");
    }
    program_.directory = fs::absolute(folder).lexically_normal().string();
  }

  // The definition holds what a preset means today.
  Json read_results(const JsonField& field) {
    if (!field.value().is_string()) {
      for (const JsonField& result :
           field.members("an object of names and sources, or a preset's name")) {
        read_result(result);
      }
      check_units(field);
      return field.value();
    }
    std::vector<std::string> known;
    for (const ResultPreset& preset : result_presets()) {
      if (field.value() == preset.name) {
        const JsonDocument document(fmt::format("{}, preset {}", field.where(), preset.name),
                                    preset.results);
        return read_results(JsonField(document, "see sweeps/README.md"));
      }
      known.emplace_back(preset.name);
    }
    const std::string& name = field.text();
    field.fail(fmt::format("there is no preset \"{}\"", name), suggestion(name, known));
  }

  void read_result(const JsonField& field) {
    const std::string& name = field.key();
    std::vector<std::string> known;
    for (const ResultName& one : result_names()) known.emplace_back(one.name);
    const bool is_known = std::ranges::count(known, name) > 0;
    if (!is_known && !(field.value().is_object() && field.find("unit"))) {
      field.fail(fmt::format("unknown result \"{}\"", name),
                 suggestion(name, known) + " (one of your own needs a \"unit\", as \"ns/day\")");
    }
    if (!field.value().is_object()) {
      field.fail(fmt::format("result {} must say where it stands", name),
                 "write {\"line\": \"throughput: {number}\"}");
    }
    ResultSource source;
    source.name = name;
    source.where = field.where();
    field.read(
        result_readers(source, [this](const JsonField& file) { return placeholder_text(file); }));
    if (!source.unit.empty() || !source.better.empty()) {
      if (is_known && name != "samples_per_second") {
        field.fail(fmt::format("result {} has its unit in its name", name),
                   "leave unit and better out, or give the result a name of your own");
      }
      check_unit(field, source);
    }
    if (source.what.empty()) {
      field.fail(fmt::format("result {} has no source", name),
                 "add one of line, json, json_line, csv, key, events");
    }
    const bool chooses_lines = !source.among.empty() || !source.not_between.empty();
    if (chooses_lines && source.from != ResultFrom::line) {
      field.fail(fmt::format("result {} has \"{}\", which is of printed lines", name,
                             source.among.empty() ? "not_between" : "among"),
                 "leave it out");
    }
    const bool needs_file = source.from == ResultFrom::csv || source.from == ResultFrom::events;
    if (needs_file && source.file.empty()) {
      field.fail(fmt::format("result {} needs a \"file\"", name), "add it");
    }
    if (!source.file.empty() &&
        (source.from == ResultFrom::line || source.from == ResultFrom::json_line)) {
      field.fail(fmt::format("result {} is of printed lines, and has a file", name),
                 "leave file out, or use json, csv or key");
    }
    program_.results.push_back(std::move(source));
  }

  // "tokens/s" counts tokens; other units are the result's own.
  static void check_unit(const JsonField& field, ResultSource& source) {
    std::string& unit = source.unit;
    const bool is_plain = unit.find_first_of("\\\"<>|,;\n") == std::string::npos;
    if (unit.empty() || unit.size() > kLongestUnit || !is_plain || unit != trim(unit)) {
      field.fail(fmt::format("result {} needs a short unit", source.name),
                 "write \"unit\": \"ns/day\"");
    }
    const std::string counted = unit.ends_with("/s") ? unit.substr(0, unit.size() - 2) : "";
    if (is_plural(counted) && source.better != "less") {
      unit = counted == "samples" ? "" : counted;
      source.better.clear();
      return;
    }
    static constexpr const char* kTimes[] = {"ns",     "us",      "ms",  "s",       "sec",
                                             "second", "seconds", "min", "minutes", "h",
                                             "hour",   "hours",   "day", "days"};
    if (source.better.empty() && is_one_of(unit.substr(0, unit.find_first_of("/ ")), kTimes)) {
      field.fail(
          fmt::format("result {} is in {}, of which more or less may be better", source.name, unit),
          "add \"better\": \"less\", or \"more\"");
    }
    if (source.better.empty()) source.better = "more";
  }

  // A table has one unit.
  void check_units(const JsonField& field) const {
    const auto has = [&](std::string_view name) {
      return std::ranges::count(program_.results, name, &ResultSource::name) > 0;
    };
    if (has("tokens_per_step") && (!has("step_seconds") || has("tokens_per_second"))) {
      field.fail("tokens_per_step is for programs that print step_seconds and no rate",
                 has("step_seconds") ? "leave it out" : "add step_seconds");
    }
    const ResultSource *first = nullptr, *rate = nullptr;
    for (const ResultSource& source : program_.results) {
      const std::string_view unit = unit_counted(source);
      const bool is_rate =
          &result_name(source) == &result_names().front() || source.name.ends_with("s_per_second");
      if (is_rate && std::exchange(rate, &source)) {
        field.fail(fmt::format("results {} and {} are both rates", first->name, source.name),
                   "keep the one that runs are compared by");
      }
      if (unit.empty() && !is_rate && source.name != "samples") continue;
      if (first && unit != unit_counted(*first)) {
        field.fail(
            fmt::format("results {} and {} count different things", first->name, source.name),
            "keep those of one unit");
      }
      first = &source;
    }
  }

  const JsonField field_;
  const std::string folder_;
  UserProgram program_;
};

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// The end of the name of a placeholder that begins at `at`, after its brace; npos: none does.
std::size_t end_of_name(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_name_char(text[end])) ++end;
  const bool named = end > at && end < text.size() && text[end] == '}';
  return named ? end : std::string_view::npos;
}

}  // namespace

const ResultName& result_name(const ResultSource& source) {
  const auto found = std::ranges::find(result_names(), source.name, &ResultName::name);
  return found == result_names().end() ? result_names().front() : *found;
}

std::string_view unit_counted(const ResultSource& source) {
  return source.unit.empty() ? result_name(source).unit : source.unit;
}

const std::vector<std::string>& program_keys() {
  static const std::vector<std::string> keys = {"command", "shell",     "environment", "directory",
                                                "setup",   "processes", "results",     "trace"};
  return keys;
}

std::string UserProgram::tag() const {
  Json recipe = Json::parse(definition);
  recipe.erase("directory");  // the same program, wherever it lies
  return name + "@" + hash_hex(json_text(recipe));
}

std::vector<std::string> UserProgram::templates() const {
  std::vector<std::string> texts = command;
  texts.insert(texts.end(), setup.begin(), setup.end());
  for (const auto& [name, value] : environment) texts.push_back(value);
  for (const ResultSource& source : results) texts.push_back(source.file);
  texts.push_back(trace);
  return texts;
}

UserProgram parse_program_object(const JsonField& field, const std::string& name,
                                 const std::string& folder) {
  return ProgramReader(field, folder).read(name);
}

UserProgram parse_program(const std::string& name, const std::string& definition) {
  const JsonDocument document("program " + name, definition);
  const JsonField field(document, "see sweeps/README.md");
  field.check_keys(program_keys());
  return parse_program_object(field, name, "/");
}

std::vector<std::string> known_placeholders() {
  std::vector<std::string> known;
  for (const Parameter& parameter : parameters()) known.emplace_back(parameter.name);
  known.insert(known.end(), std::begin(kOfThePoint), std::end(kOfThePoint));
  known.insert(known.end(), std::begin(kOfTheRun), std::end(kOfTheRun));
  known.insert(known.end(), std::begin(kOfAProcess), std::end(kOfAProcess));
  return known;
}

const std::string& text_without_zero(const JsonField& field) {
  if (field.text_or_empty().find('\0') == std::string::npos) return field.text_or_empty();
  field.fail(field.key() + " contains a zero byte", "remove it");
}

std::vector<std::string> placeholders_in(std::string_view text) {
  std::vector<std::string> names;
  filled(text, [&](const std::string& name) {
    names.push_back(name);
    return "";
  });
  return names;
}

std::string filled(std::string_view text, const PlaceholderValue& value,
                   const std::function<void(char)>& literal) {
  std::string result;
  const auto keep = [&](std::string_view part) {
    result += part;
    if (literal) std::for_each(part.begin(), part.end(), literal);
  };
  for (std::size_t at = 0; at < text.size();) {
    const bool doubled = text.substr(at).starts_with("{{");
    const std::size_t name = at + (doubled ? 2 : 1);
    const std::size_t end = text[at] == '{' ? end_of_name(text, name) : std::string::npos;
    const bool is_of_shell = !doubled && at > 0 && text[at - 1] == '$';  // ${variable}
    const bool closed = end != std::string::npos && !is_of_shell &&
                        (!doubled || text.substr(end).starts_with("}}"));
    if (!closed) {
      keep(text.substr(at++, 1));
    } else if (doubled) {
      keep(text.substr(at + 1, end - at));
      at = end + 2;
    } else {
      result += value(std::string(text.substr(name, end - name)));
      at = end + 1;
    }
  }
  return result;
}

std::optional<std::string> value_in_point(const std::string& name, const Point& parameters,
                                          const Layout& layout) {
  const auto text = [](int value) { return std::optional(std::to_string(value)); };
  if (name == "gpus") return text(layout.gpus);
  if (name == "nodes") return text(layout.nodes);
  if (name == "ntasks") return text(layout.ntasks);
  if (name == "tasks_per_node") return text(layout.ntasks / layout.nodes);
  if (name == "gpus_per_node") return text(layout.gpus / layout.nodes);
  if (name == "gpus_per_task") return text(layout.gpus / layout.ntasks);
  if (name == "cpus_per_task") return text(layout.cpus_per_task);
  if (name == "cpus_per_node") return text(layout.cpus_per_task * (layout.ntasks / layout.nodes));
  if (name == "cpus_per_replica") return text(layout.cpus_per_replica);
  if (name == "device") return Settings(parameters).text("device");
  if (name == "program") return name_of_program(parameters.text("program").value_or(""));
  if (const auto given = parameters.text(name)) return given;
  const auto batch = parameters.integer("batch_per_replica");
  if (name != "global_batch" || !batch) return std::nullopt;
  const auto parts = parameters.integer("gradient_accumulation_steps").value_or(1);
  return std::to_string(*batch * parts * layout.gpus);
}

void check_placeholders(const UserProgram& program, const Point& parameters, const Layout& layout,
                        const std::string& where) {
  for (const std::string& text : program.templates()) {
    for (const std::string& name : placeholders_in(text)) {
      if (is_one_of(name, kOfTheRun) || is_one_of(name, kOfAProcess)) continue;
      if (value_in_point(name, parameters, layout)) continue;
      throw usage_error(
          fmt::format("program {} has {{{}}}, which has no value", program.name, name), where,
          fmt::format("put {} into fixed or axes", name));
    }
  }
}

bool can_see(const UserProgram& program, std::string_view parameter) {
  // Its place, of which it need not be told: cores, GPUs, ranks.
  const Parameter& known = *find_parameter(parameter);
  const bool is_place = known.role == Role::layout && parameter != "backend";
  if (is_place || known.need == Requirement::own_program || known.role == Role::replication ||
      known.role == Role::none || parameter == "device" || parameter == "oversubscribe") {
    return true;
  }
  const bool of_batch = parameter == "batch_per_replica" ||
                        parameter == "gradient_accumulation_steps" || parameter == "gpus";
  for (const std::string& text : program.templates()) {
    for (const std::string& name : placeholders_in(text)) {
      if (name == parameter || (of_batch && name == "global_batch")) return true;
    }
  }
  return false;
}

bool can_see_replicas(const UserProgram& program) {
  if (program.processes != "one") return true;
  const auto shows = [](const std::string& text) {
    return text.find("nproc") != std::string::npos ||
           std::ranges::any_of(placeholders_in(text), [](const std::string& name) {
             return is_one_of(name, kOfThePoint) || name == "devices" || name == "gpus" ||
                    name == "nodes" || name == "global_batch" || name.starts_with("cpus_per_");
           });
  };
  return std::ranges::any_of(program.templates(), shows);
}

const UserProgram& program_at(const Spec& spec, const Point& parameters, const std::string& where) {
  const auto asked = parameters.text("program");
  if (!asked && spec.programs.size() == 1) return spec.programs.front();
  std::vector<std::string> known;
  for (const UserProgram& each : spec.programs) {
    if (known.emplace_back(each.name); asked && name_of_program(*asked) == each.name) return each;
  }
  throw usage_error(fmt::format("unknown program \"{}\"", asked.value_or("")), where,
                    suggestion(asked.value_or(""), known));
}

}  // namespace paceline
