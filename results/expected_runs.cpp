#include "results/expected_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json_field.h"
#include "engine/core/text.h"
#include "engine/facts/json.h"
#include "results/store.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr int kSchema = 1;
constexpr std::int64_t kMostRepeats = 1000, kMostRuns = 1'000'000;  // as a sweep allows

// A point a line, so that people and diff can read it.
std::string serialize(const ExpectedRuns& plan) {
  std::string text = fmt::format(
      "{{\n\"schema\": {},\n\"study\": {},\n\"workload\": {},\n\"repeats\": {},\n", kSchema,
      json_text(Json(plan.study)), json_text(Json(plan.workload)), plan.repeats);
  Json programs = Json::array();
  for (const ProgramFacts& program : plan.programs) programs.push_back(facts_to_json(program));
  if (!programs.empty()) {
    text += fmt::format("\"programs\": {},\n\"seen_at\": {},\n", json_text(programs),
                        json_text(Json(plan.seen_at)));
  }
  text += "\"points\": [";
  const char* separator = "\n";
  for (const Point& point : plan.points) {
    text += separator + json_text(to_json(point));
    separator = ",\n";
  }
  return text + "\n]}\n";
}

Point parse_point(const JsonField& field) {
  Point point;
  for (const JsonField& member : field.members()) {
    const std::string where = member.where();
    point.set(member.key(),
              recorded_value(member.key(), value_from_json(member.value(), where), where));
  }
  recorded_layout(point, field.where());  // reports lay it out, too
  return point;
}

ExpectedRuns parse_plan(const JsonDocument& document) {
  const JsonField root(document, "run the sweep again");
  if (root.at("schema").value() != kSchema) {
    root.at("schema").fail("is not a plan that this build reads");
  }
  ExpectedRuns plan;
  if (const auto study = root.find("study")) plan.study = study->text_or_empty();
  if (const auto workload = root.find("workload")) plan.workload = workload->text_or_empty();
  if (const auto repeats = root.find("repeats")) {
    plan.repeats = static_cast<int>(repeats->whole(1, kMostRepeats));
  }
  if (const auto programs = root.find("programs")) {
    for (const JsonField& program : programs->elements()) {
      plan.programs.push_back(parse_facts<ProgramFacts>(program.value(), program.where()));
    }
  }
  if (const auto seen = root.find("seen_at")) plan.seen_at = seen->text_or_empty();
  const auto points = root.at("points").elements();
  if (static_cast<std::int64_t>(points.size()) * plan.repeats > kMostRuns) {
    root.at("points").fail("are more runs than a study may have");
  }
  plan.points = mapped(points, parse_point);
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

void write_expected_runs(const fs::path& study_folder, const ExpectedRuns& plan) {
  make_folder(study_folder);
  replace_file(study_folder / kExpectedRunsFile, serialize(plan));
}

ExpectedRuns parse_expected_runs(const std::string& name, std::string_view text) {
  try {
    return parse_plan(JsonDocument(name, text));
  } catch (const Error& error) {  // of usage where the same value in a command would be
    throw input_error(error.what());
  }
}

std::optional<ExpectedRuns> read_expected_runs(const fs::path& study_folder) {
  const fs::path file = study_folder / kExpectedRunsFile;
  if (!path_exists(file) || !fs::is_regular_file(file)) return std::nullopt;
  return parse_expected_runs(file.string(), read_text(file));
}

std::vector<ExpectedRuns> load_plans(const std::vector<fs::path>& studies, StoreContent& content) {
  std::vector<ExpectedRuns> all;
  const auto add = [&](const fs::path& folder) {
    const auto is_it = [&](const Rejected& rejected) { return rejected.file == folder; };
    if (std::any_of(content.rejected.begin(), content.rejected.end(), is_it)) return;
    try {
      if (auto wanted = read_expected_runs(folder)) {
        wanted->unreadable = unreadable_points(folder, content);
        all.push_back(std::move(*wanted));
      }
    } catch (const Error& error) {
      content.rejected.push_back({folder / kExpectedRunsFile, error.what()});
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
