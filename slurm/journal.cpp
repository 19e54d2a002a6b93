#include "slurm/journal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "slurm/script.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr int kArraySchema = 1;

[[noreturn]] void fail_to_write(const fs::path& file, int code) {
  throw input_error(std::string("the file cannot be written: ") + std::strerror(code),
                    file.string(), "make room, or check its permissions");
}

// Not ignored, because runs of lost lines may be in the queue and would be submitted again.
[[noreturn]] void fail_damaged(const fs::path& file, std::size_t line) {
  throw input_error("the journal is damaged", fmt::format("{}:{}", file.string(), line),
                    "look at squeue before you submit again; then restore it, or remove the line");
}

// Also true if it is empty.
bool may_begin_event(const std::string& text) {
  return text.empty() || (text[0] == '{' && std::none_of(text.begin(), text.end(),
                                                         [](unsigned char c) { return c < ' '; }));
}

// Appends to a file whose lines are either complete or, at its end, cut off.
class LineAppender {
 public:
  LineAppender(const Folder& study, const fs::path& file)
      : file_(file), descriptor_(study.open_to_append(file.lexically_relative(study.path()))) {}

  // Appends a line. Removes a line that was cut off first.
  void append(const std::string& text) {
    if (ftruncate(descriptor_.number(), end_of_lines()) != 0) fail_to_write(file_, errno);
    const std::string whole = text + "\n";
    const ssize_t written = write(descriptor_.number(), whole.data(), whole.size());
    if (written != static_cast<ssize_t>(whole.size()))
      fail_to_write(file_, written < 0 ? errno : ENOSPC);
    if (fsync(descriptor_.number()) != 0) fail_to_write(file_, errno);
  }

 private:
  off_t end_of_lines() const {
    off_t end = lseek(descriptor_.number(), 0, SEEK_END);
    char last = 0;
    while (end > 0 && pread(descriptor_.number(), &last, 1, end - 1) == 1 && last != '\n') --end;
    return end;
  }

  const fs::path& file_;
  Descriptor descriptor_;
};

Element read_element(const Json& row, const Json& array, const std::string& where) {
  Element element{
      array.at("study"), array.at("workload"), row.at("point"),    row.at("point_folder"), {},
      row.at("repeat"),  row.at("identity"),   row.at("data_hash")};
  for (const auto& [name, value] : row.at("parameters").items()) {
    element.parameters.set(name, checked_value(name, value_from_json(value, where), where));
  }
  return element;
}

std::vector<Element> read_elements(const fs::path& file) {
  const JsonDocument document = read_json(file);
  std::vector<Element> elements;
  try {
    const Json& array = document.value();
    for (const Json& row : array.at("elements")) {
      elements.push_back(read_element(row, array, file.string()));
    }
  } catch (const nlohmann::json::exception&) {
    throw input_error("not the description of an array", file.string(),
                      "restore it, or move the study's slurm folder away");
  }
  return elements;
}

}  // namespace

Journal::Journal(fs::path study)
    : study_(std::move(study)), file_(study_ / "slurm" / "journal.jsonl") {
  if (!path_exists(file_)) return;
  // What follows the last line break is a line that was cut off, or nothing.
  const std::vector<std::string> lines = split(read_text(file_), '\n');
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const Json event = Json::parse(lines[i], nullptr, false);
    try {
      apply(event);
    } catch (const nlohmann::json::exception&) {
      fail_damaged(file_, i + 1);
    }
  }
  const bool is_empty = lines.size() == 1 && lines[0].empty();
  if (is_empty || !may_begin_event(lines.back())) fail_damaged(file_, lines.size());
}

std::vector<std::int64_t> Journal::jobs() const {
  return mapped_if(
      arrays_, [](const SentArray& array) { return array.job > 0; }, &SentArray::job);
}

SentArray* Journal::find(const std::string& session, const std::string& array) {
  for (SentArray& known : arrays_) {
    if (known.session == session && known.name == array) return &known;
  }
  return nullptr;
}

void Journal::apply(const Json& event) {
  const std::string kind = event.at("event");
  const bool describes = kind == "planned" || kind == "later";
  if (!describes && kind != "sending" && kind != "sent" && kind != "refused") return;
  const std::string session = event.at("session"), name = event.at("array");
  if (describes) {
    SentArray array{.session = session,
                    .name = name,
                    .shape = event.at("shape"),
                    .minutes = event.at("minutes"),
                    .later = kind == "later",
                    .elements = read_elements(study_ / file_of_array(session, name, ".json"))};
    arrays_.push_back(std::move(array));
  } else if (SentArray* array = find(session, name)) {
    array->called = true;
    if (kind == "sent") array->job = event.at("job");
    if (kind == "refused") array->refused = true;
  }
}

void Journal::append(const Json& event) {
  Json stamped = {{"time", utc_time_stamp()}};
  stamped.update(event);
  LineAppender(Folder(study_), file_).append(json_text(stamped));
  apply(stamped);
}

void Journal::begin(const std::string& session, const std::string& spec, const std::string& site) {
  append({{"event", "submission"}, {"session", session}, {"spec", spec}, {"site", site}});
}

void Journal::planned(const std::string& session, const JobArray& array,
                      const std::vector<Element>& elements, bool later) {
  Json rows = Json::array();
  for (const Element& element : elements) {
    rows.push_back({{"point", element.point},
                    {"point_folder", element.point_folder},
                    {"parameters", to_json(element.parameters)},
                    {"repeat", element.repeat},
                    {"identity", element.identity},
                    {"data_hash", element.data_hash}});
  }
  const Json description = {{"schema", kArraySchema},
                            {"study", elements.front().study},
                            {"workload", elements.front().workload},
                            {"shape", array.shape.text()},
                            {"elements", rows}};
  Folder(study_).replace_file(file_of_array(session, array.name, ".json"),
                              json_text(description, 1) + "\n");
  append({{"event", later ? "later" : "planned"},
          {"session", session},
          {"array", array.name},
          {"shape", array.shape.text()},
          {"minutes", array.need.minutes}});
}

void Journal::sending(const std::string& session, const std::string& array) {
  append({{"event", "sending"}, {"session", session}, {"array", array}});
}

void Journal::sent(const std::string& session, const std::string& array, std::int64_t job) {
  append({{"event", "sent"}, {"session", session}, {"array", array}, {"job", job}});
}

void Journal::refused(const std::string& session, const std::string& array,
                      const std::string& why) {
  append({{"event", "refused"}, {"session", session}, {"array", array}, {"why", why}});
}

void Journal::cancelled(const std::vector<std::int64_t>& jobs) {
  append({{"event", "cancelled"}, {"jobs", jobs}});
}

void need_submissions(const Journal& journal, const fs::path& study) {
  if (!path_exists(study) || !fs::is_directory(study)) {
    throw input_error("no such study", study.string(), "check the path");
  }
  if (journal.empty()) {
    throw input_error(
        "this study was not submitted to Slurm", study.string(),
        "submit it: paceline submit SPEC --site SITE; of local runs, paceline sweep SPEC "
        "--dry-run shows what is missing");
  }
}

}  // namespace paceline
