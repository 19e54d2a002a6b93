#include "sweeps/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
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

struct SourceKey {
  const char* key;
  ResultFrom from;
};
constexpr SourceKey kSources[] = {
    {"line", ResultFrom::line}, {"json", ResultFrom::json}, {"json_line", ResultFrom::json_line},
    {"csv", ResultFrom::csv},   {"key", ResultFrom::key},   {"events", ResultFrom::events}};

constexpr std::pair<const char*, Pick> kPicks[] = {
    {"only", Pick::only},     {"first", Pick::first}, {"last", Pick::last}, {"mean", Pick::mean},
    {"median", Pick::median}, {"min", Pick::least},   {"max", Pick::most}};

class ProgramReader {
 public:
  ProgramReader(const JsonDocument& document, std::string folder)
      : document_(document), folder_(std::move(folder)) {}

  UserProgram read(const Json& object, const std::string& path, const std::string& name) {
    program_.name = name;
    if (!object.is_object()) fail("a program is a JSON object", path);
    for (const auto& [key, value] : object.items()) {
      const auto& known = program_keys();
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        fail(fmt::format("unknown key \"{}\"", key), path + "/" + key, suggestion(key, known));
      }
    }
    if (!object.contains("command")) {
      fail(fmt::format("program {} has no \"command\"", name), path, "add one, a list of words");
    }
    if (const auto shell = object.find("shell"); shell != object.end()) {
      if (!shell->is_boolean()) fail("shell must be true or false", path + "/shell");
      program_.shell = shell->get<bool>();
    }
    program_.command = words(object["command"], path + "/command");
    if (object.contains("setup")) program_.setup = words(object["setup"], path + "/setup");
    if (object.contains("environment")) read_environment(object, path + "/environment");
    read_directory(object, path + "/directory");
    read_processes(object, path + "/processes");
    Json definition = object;
    if (object.contains("results")) {
      if (object["results"].is_string()) {
        definition["results"] = read_preset(object["results"], path + "/results");
      }
      read_results(definition["results"], path + "/results");
    }
    if (object.contains("trace")) program_.trace = text(object["trace"], path + "/trace");
    check_names(path);
    definition["directory"] = program_.directory;
    program_.definition = json_text(definition);
    if (program_.definition.size() > kMaxDefinition) {
      fail(fmt::format("program {} is longer than {}", name, format_bytes(kMaxDefinition)), path,
           "put parts of it into a script");
    }
    return std::move(program_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& path,
                         const std::string& fix = "see sweeps/README.md") const {
    throw Error(ErrorKind::input, what, document_.where(path), fix);
  }

  static std::string make_key(const std::string& path) { return path.substr(path.rfind('/') + 1); }

  std::string text(const Json& value, const std::string& path) const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      fail(fmt::format("{} must be a text", make_key(path)), path, "write it in quotes");
    }
    if (value.get_ref<const std::string&>().find('\0') != std::string::npos) {
      fail(fmt::format("{} contains a zero byte", make_key(path)), path, "remove it");
    }
    return value.get<std::string>();
  }

  // A list of words, or with "shell" one text.
  std::vector<std::string> words(const Json& value, const std::string& path) const {
    if (program_.shell) {
      if (!value.is_string()) {
        fail(fmt::format("with \"shell\" {} is one text", make_key(path)), path,
             "write it in quotes, or leave shell out");
      }
      return {text(value, path)};
    }
    if (value.is_string()) {
      fail(fmt::format("{} is a list of words, as no shell reads it", make_key(path)), path,
           "write [\"python3\", \"train.py\"], or add \"shell\": true");
    }
    if (!value.is_array() || value.empty()) {
      fail(fmt::format("{} must be a list of words", make_key(path)), path);
    }
    std::vector<std::string> result;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string at = fmt::format("{}/{}", path, i);
      if (value[i].is_number()) {
        fail("a word must be a text", at, "write it in quotes");
      }
      // Later words may be empty, as "".
      result.push_back(i > 0 && value[i] == "" ? "" : text(value[i], at));
    }
    return result;
  }

  void read_environment(const Json& object, const std::string& path) {
    const Json& given = object["environment"];
    if (!given.is_object()) fail("environment must be an object of names and texts", path);
    for (const auto& [name, value] : given.items()) {
      const std::string at = path + "/" + name;
      if (name.empty() || name.find('=') != std::string::npos) {
        fail(fmt::format("a variable cannot be named \"{}\"", name), at, "rename it");
      }
      program_.environment.emplace_back(name, value == "" ? "" : text(value, at));
    }
  }

  void read_directory(const Json& object, const std::string& path) {
    namespace fs = std::filesystem;
    fs::path folder = folder_;
    if (object.contains("directory")) folder /= text(object["directory"], path);
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) {
      fail(fmt::format("directory {} is not a folder", folder.string()), path,
           "it is relative to the spec's folder");
    }
    program_.directory = fs::absolute(folder).lexically_normal().string();
  }

  void read_processes(const Json& object, const std::string& path) {
    if (!object.contains("processes")) return;
    program_.processes = text(object["processes"], path);
    const std::vector<std::string> known = {"one", "node", "replica"};
    if (std::find(known.begin(), known.end(), program_.processes) == known.end()) {
      fail(fmt::format("processes cannot be \"{}\"", program_.processes), path,
           suggestion(program_.processes, known));
    }
  }

  // The definition holds what the preset means today.
  Json read_preset(const std::string& name, const std::string& path) const {
    std::vector<std::string> known;
    for (const ResultPreset& preset : result_presets()) {
      if (name == preset.name) return Json::parse(preset.results);
      known.emplace_back(preset.name);
    }
    fail(fmt::format("there is no preset \"{}\"", name), path, suggestion(name, known));
  }

  void read_results(const Json& object, const std::string& path) {
    if (!object.is_object()) {
      fail("results must be an object of names and sources, or a preset's name", path);
    }
    for (const auto& [name, value] : object.items()) read_result(name, value, path + "/" + name);
    check_units(path);
  }

  void read_result(const std::string& name, const Json& value, const std::string& path) {
    std::vector<std::string> known;
    for (const ResultName& one : result_names()) known.emplace_back(one.name);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail(fmt::format("unknown result \"{}\"", name), path, suggestion(name, known));
    }
    if (!value.is_object()) {
      fail(fmt::format("result {} must say where it stands", name), path,
           "write {\"line\": \"throughput: {number}\"}");
    }
    ResultSource source;
    source.name = name;
    source.where = document_.where(path);
    bool found = false;
    for (const auto& [key, member] : value.items()) {
      const std::string at = path + "/" + key;
      if (read_option(source, key, member, at)) continue;
      const auto kind = std::find_if(std::begin(kSources), std::end(kSources),
                                     [&key = key](const SourceKey& one) { return key == one.key; });
      if (kind == std::end(kSources)) {
        fail(fmt::format("unknown key \"{}\"", key), at,
             suggestion(key, {"line", "json", "json_line", "csv", "key", "events", "file", "pick",
                              "scale", "per_replica"}));
      }
      if (found) fail(fmt::format("result {} has two sources", name), at, "keep one of them");
      found = true;
      source.from = kind->from;
      source.what = text(member, at);
    }
    if (!found) {
      fail(fmt::format("result {} has no source", name), path,
           "add one of line, json, json_line, csv, key, events");
    }
    const bool needs_file = source.from == ResultFrom::csv || source.from == ResultFrom::events;
    if (needs_file && source.file.empty()) {
      fail(fmt::format("result {} needs a \"file\"", name), path, "add it");
    }
    if (!source.file.empty() &&
        (source.from == ResultFrom::line || source.from == ResultFrom::json_line)) {
      fail(fmt::format("result {} is of printed lines, and has a file", name), path,
           "leave file out, or use json, csv or key");
    }
    program_.results.push_back(std::move(source));
  }

  // A table has one unit.
  void check_units(const std::string& path) const {
    const auto has = [&](std::string_view name) {
      return std::ranges::count(program_.results, name, &ResultSource::name) > 0;
    };
    if (has("tokens_per_step") && (!has("step_seconds") || has("tokens_per_second"))) {
      fail("tokens_per_step is for programs that print step_seconds and no rate", path,
           has("step_seconds") ? "leave it out" : "add step_seconds");
    }
    std::string first;
    for (const ResultSource& source : program_.results) {
      const std::string_view unit = find_unit(source.name);
      if (unit.empty() && !source.name.starts_with("samples")) continue;
      if (!first.empty() && unit != find_unit(first)) {
        fail(fmt::format("results {} and {} count different things", first, source.name), path,
             "keep those of one unit");
      }
      first = source.name;
    }
  }

  static std::string_view find_unit(const std::string& result) {
    return std::ranges::find(result_names(), result, &ResultName::name)->unit;
  }

  bool read_option(ResultSource& source, const std::string& key, const Json& value,
                   const std::string& path) {
    if (key == "file") {
      source.file = text(value, path);
    } else if (key == "pick") {
      const std::string pick = text(value, path);
      std::vector<std::string> known;
      for (const auto& [name, meaning] : kPicks) {
        if (pick == name) source.pick = meaning;
        known.emplace_back(name);
      }
      if (std::find(known.begin(), known.end(), pick) == known.end()) {
        fail(fmt::format("pick cannot be \"{}\"", pick), path, suggestion(pick, known));
      }
    } else if (key == "scale") {
      if (!value.is_number() || value.get<double>() <= 0) {
        fail("scale must be a number above 0", path, "write 0.001 for milliseconds");
      }
      source.scale = value.get<double>();
    } else if (key == "per_replica") {
      if (!value.is_boolean()) fail("per_replica must be true or false", path);
      source.per_replica = value.get<bool>();
    } else {
      return false;
    }
    return true;
  }

  void check_names(const std::string& path) const {
    std::vector<std::string> known;
    for (const Parameter& parameter : parameters()) known.emplace_back(parameter.name);
    known.insert(known.end(), std::begin(kOfThePoint), std::end(kOfThePoint));
    known.insert(known.end(), std::begin(kOfTheRun), std::end(kOfTheRun));
    known.insert(known.end(), std::begin(kOfAProcess), std::end(kOfAProcess));
    const auto check = [&](const std::string& text, const std::string& at, bool is_trace = false) {
      for (const std::string& name : placeholders_in(text)) {
        if (std::find(known.begin(), known.end(), name) == known.end()) {
          fail(fmt::format("there is no placeholder {{{}}}", name), at,
               suggestion(name, known) + " (to write braces, write {{name}})");
        }
        // Of traces, as many ranks as replicas, whoever starts them.
        if (is_trace && is_one_of(name, kOfAProcess) && name != "rank") {
          fail(fmt::format("{{{}}} has no value after the run", name), at, "use {rank}");
        }
        if (!is_trace && program_.processes == "one" && is_one_of(name, kOfAProcess)) {
          fail(fmt::format("{{{}}} differs by process, and there is one", name), at,
               "add \"processes\": \"replica\" or \"node\"");
        }
      }
    };
    const auto check_words = [&](const std::vector<std::string>& words, const std::string& at) {
      for (std::size_t i = 0; i < words.size(); ++i) check(words[i], fmt::format("{}/{}", at, i));
    };
    check_words(program_.command, path + "/command");
    check_words(program_.setup, path + "/setup");
    for (const auto& [name, value] : program_.environment) {
      check(value, path + "/environment/" + name);
    }
    for (const ResultSource& source : program_.results) {
      check(source.file, path + "/results/" + source.name + "/file");
    }
    check(program_.trace, path + "/trace", true);
  }

  const JsonDocument& document_;
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

const std::vector<ResultName>& result_names() {
  static const std::vector<ResultName> names = {
      {"samples_per_second", "throughput of all replicas together", false},
      {"tokens_per_second", "the same in tokens", false, {}, "tokens"},
      {"images_per_second", "the same in images", false, {}, "images"},
      {"steps_per_second", "the same in steps", false, {}, "steps"},
      {"fit_seconds", "seconds of training; else those of the program, from start to end", false},
      {"samples", "samples in fit_seconds", false},
      {"tokens_per_step", "tokens of one step of all replicas", false, {}, "tokens"},
      {"tokens", "tokens in fit_seconds", false, {}, "tokens"},
      {"images", "images in fit_seconds", false, {}, "images"},
      {"steps", "steps in fit_seconds", false},
      {"global_batch", "samples of one step", false},
      {"parameter_count", "trainable parameters", false},
      {"precision", "of its products, as fp32", false, "fp32|tf32|bf16|fp16|fp64"},
      {"test_accuracy", "0 to 1", false},
      {"train_loss", "of the last epoch", false},
      {"step_seconds", "of each step after the warm-up", true},
      {"epoch_seconds", "of each epoch", true},
  };
  return names;
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

UserProgram parse_program_object(const Json& object, const JsonDocument& document,
                                 const std::string& path, const std::string& name,
                                 const std::string& folder) {
  return ProgramReader(document, folder).read(object, path, name);
}

UserProgram parse_program(const std::string& name, const std::string& definition) {
  const JsonDocument document("program " + name, definition);
  return parse_program_object(document.value(), document, "", name, "/");
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
      throw Error(ErrorKind::usage,
                  fmt::format("program {} has {{{}}}, which has no value", program.name, name),
                  where, fmt::format("put {} into fixed or axes", name));
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

const UserProgram& parse_program_object(const Spec& spec, const Point& parameters,
                                        const std::string& where) {
  const auto asked = parameters.text("program");
  if (!asked && spec.programs.size() == 1) return spec.programs.front();
  std::vector<std::string> known;
  for (const UserProgram& program : spec.programs) {
    if (asked && name_of_program(*asked) == program.name) return program;
    known.push_back(program.name);
  }
  throw Error(ErrorKind::usage, fmt::format("unknown program \"{}\"", asked.value_or("")), where,
              suggestion(asked.value_or(""), known));
}

}  // namespace paceline
