#include "results/expected_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr int kSchema = 1;
constexpr std::int64_t kMostRepeats = 1000, kMostRuns = 1'000'000;  // as a sweep allows

// A point a line, so that people and diff can read it.
std::string serialize(const ExpectedRuns& plan) {
  std::string text = fmt::format(
      "{{\n\"schema\": {},\n\"study\": {},\n\"workload\": {},\n\"repeats\": {},\n"
      "\"points\": [",
      kSchema, json_text(Json(plan.study)), json_text(Json(plan.workload)), plan.repeats);
  const char* separator = "\n";
  for (const Point& point : plan.points) {
    text += separator + json_text(to_json(point));
    separator = ",\n";
  }
  return text + "\n]}\n";
}

Value parse_value(const Json& json, const std::string& where) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  throw Error(ErrorKind::input, "the value is not a number, text, true or false", where,
              "run the sweep again");
}

Point parse_point(const JsonDocument& document, std::size_t index) {
  const std::string path = fmt::format("/points/{}", index);
  Point point;
  for (const auto& [name, json] : document.value().at("points").at(index).items()) {
    const std::string where = document.where(path + "/" + name);
    point.set(name, recorded_value(name, parse_value(json, where), where));
  }
  recorded_layout(point, document.where(path));  // reports lay it out, too
  return point;
}

ExpectedRuns parse_expected_runs(const JsonDocument& document) {
  const Json& json = document.value();
  const auto refuse = [&](const char* what, const char* key) {
    throw Error(ErrorKind::input, what, document.name() + ", key " + key, "run the sweep again");
  };
  if (!json.is_object() || json.value("schema", 0) != kSchema) {
    refuse("is not a plan that this build reads", "/schema");
  }
  if (!json.contains("points") || !json["points"].is_array()) refuse("is not a list", "/points");
  ExpectedRuns plan;
  plan.study = json.value("study", "");
  plan.workload = json.value("workload", "");
  const Json repeats = json.value("repeats", Json(1));
  if (!repeats.is_number_integer() || repeats < 1 || repeats > kMostRepeats) {
    refuse("is not a whole number from 1 to 1000", "/repeats");
  }
  plan.repeats = repeats.get<int>();
  if (static_cast<std::int64_t>(json["points"].size()) * plan.repeats > kMostRuns) {
    refuse("are more runs than a study may have", "/points");
  }
  for (std::size_t i = 0; i < json["points"].size(); ++i) {
    if (!json["points"][i].is_object()) refuse("is not a list of objects", "/points");
    plan.points.push_back(parse_point(document, i));
  }
  return plan;
}

std::set<std::string> unreadable_points(const fs::path& study, const StoreContent& content) {
  std::set<std::string> points;
  for (const Rejected& rejected : content.rejected) {
    for (const fs::path& place : {rejected.file, rejected.file.parent_path()}) {
      const fs::path parent = place.parent_path() / "", here = study / "";
      if (parent.lexically_normal() == here.lexically_normal()) {
        points.insert(place.filename().string());
      }
    }
  }
  return points;
}

}  // namespace

bool ExpectedRuns::is_unreadable(const Point& point) const {
  const std::vector<std::string> has = split(point.folder(), ',');
  return std::ranges::any_of(unreadable, [&](const std::string& folder) {
    const std::vector<std::string> parts = split(folder, ',');
    return folder == Point().folder() || std::ranges::all_of(parts, [&](const std::string& part) {
             return std::ranges::find(has, part) != has.end();
           });
  });
}

void write_wanted(const fs::path& study_folder, const ExpectedRuns& plan) {
  make_folder(study_folder);
  replace_file(study_folder / kWantedFile, serialize(plan));
}

ExpectedRuns parse_wanted(const std::string& name, std::string_view text) {
  try {
    return parse_expected_runs(JsonDocument(name, text));
  } catch (const Json::exception&) {
    throw Error(ErrorKind::input, "not a plan of a study: a value has the wrong type", name,
                "run the sweep again");
  } catch (const Error& error) {  // of usage where the same value in a command would be
    throw Error(ErrorKind::input, error.what());
  }
}

std::optional<ExpectedRuns> read_wanted(const fs::path& study_folder) {
  const fs::path file = study_folder / kWantedFile;
  if (!path_exists(file) || !fs::is_regular_file(file)) return std::nullopt;
  return parse_wanted(file.string(), read_text(file));
}

std::vector<ExpectedRuns> load_plans(const std::vector<fs::path>& studies, StoreContent& content) {
  std::vector<ExpectedRuns> all;
  const auto add = [&](const fs::path& folder) {
    const auto is_it = [&](const Rejected& rejected) { return rejected.file == folder; };
    if (std::any_of(content.rejected.begin(), content.rejected.end(), is_it)) return;
    try {
      if (auto wanted = read_wanted(folder)) {
        wanted->unreadable = unreadable_points(folder, content);
        all.push_back(std::move(*wanted));
      }
    } catch (const Error& error) {
      content.rejected.push_back({folder / kWantedFile, error.what()});
    }
  };
  for (const fs::path& study : studies) {
    std::error_code none;
    add(study);
    for (const auto& entry : fs::directory_iterator(study, none)) {
      if (entry.is_directory(none)) add(entry.path());
    }
  }
  return all;
}

}  // namespace paceline
