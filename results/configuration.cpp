#include "results/configuration.h"

#include <nlohmann/json.hpp>
#include <regex>

#include "engine/core/json.h"
#include "engine/core/json_field.h"

namespace paceline {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 64 << 10;

std::string expand(const JsonField& field, const Environment& environment) {
  static const std::regex kVariable(R"(^~(?=/|$)|\$(\w+)|\$\{(\w+)\})");
  const std::string& whole = field.text();
  std::string text;
  auto rest = whole.begin();
  for (std::sregex_iterator it(rest, whole.end(), kVariable), end; it != end; ++it) {
    const std::string name = it->str() == "~" ? "HOME" : (*it)[1].str() + (*it)[2].str();
    const std::string value = environment_value(environment, name);
    if (value.empty()) field.fail(name + " is not set", "set it, or write the path in full");
    text += it->prefix().str() + value;
    rest = (*it)[0].second;
  }
  return text + std::string(rest, whole.end());
}

JsonFieldReader setting_into(Setting& setting, const Environment& environment) {
  return {[&](const JsonField& field) {
            setting = {expand(field, environment), field.where()};
          },
          kTextSchema};
}

JsonFieldReaders readers(Configuration& configuration, const Environment& environment) {
  return {{"results", setting_into(configuration.results, environment)},
          {"site", setting_into(configuration.site, environment)}};
}

}  // namespace

std::vector<fs::path> configuration_files(const Environment& environment) {
  std::vector<fs::path> files = {"/etc/paceline/config.json"};
  // The specification of these folders has relative ones ignored.
  fs::path folder = environment_value(environment, "XDG_CONFIG_HOME");
  const fs::path home = environment_value(environment, "HOME");
  if (!folder.is_absolute()) folder = home.is_absolute() ? home / ".config" : fs::path();
  if (!folder.empty()) files.push_back(folder / "paceline" / "config.json");
  return files;
}

Configuration read_configuration(const std::vector<fs::path>& files,
                                 const Environment& environment) {
  Configuration configuration;
  for (const fs::path& file : files) {
    std::error_code
        closed;  // a folder of another user's, as under sudo, has no settings for this one
    if (!fs::exists(file, closed)) continue;
    const JsonDocument document(file.string(), without_comments(read_text(file, kMostBytes)));
    Configuration set;
    JsonField(document, "see docs/configuration.md").read(readers(set, environment));
    if (!set.results.from.empty()) configuration.results = set.results;
    if (set.site.from.empty()) continue;
    const fs::path beside = file.parent_path() / set.site.value;
    if (fs::exists(beside, closed)) set.site.value = beside.string();
    configuration.site = set.site;
  }
  return configuration;
}

const ConfigurationHere& configuration() {
  static const ConfigurationHere here = []() -> ConfigurationHere {
    const Environment environment = environment_of_process();
    try {
      return {read_configuration(configuration_files(environment), environment), std::nullopt};
    } catch (...) {
      return {{}, caught_error()};
    }
  }();
  return here;
}

std::string configuration_schema() {
  Configuration any;
  const Environment none;
  return schema_document("Configuration of Paceline",
                         Json::parse(object_schema(readers(any, none))));
}

}  // namespace paceline
