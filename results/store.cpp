#include "results/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "results/configuration.h"
#include "results/run_record.h"
#include "results/shipped.h"
#include "results/step_samples.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kSamplesBytes = 512;  // of a record: the name, hash and size of its sidecar

// A key a line, so that people and diff can read it and it stays small.
std::string format_lines(const Json& json) {
  std::string text = "{\n";
  for (const auto& [key, value] : json.items()) {
    const std::string dumped = json_text(value);
    text += fmt::format("{}{}: {}", text.size() > 2 ? ",\n" : "", json_text(Json(key)), dumped);
  }
  return text + "\n}\n";
}

std::size_t size_of(const Json& json) {
  return json.is_object() ? format_lines(json).size() : json_text(json).size();
}

std::string record_text(const Json& thinner, const std::string& where) {
  const std::string text = format_lines(thinner);
  if (text.size() <= kRecordLimitBytes) return text;
  std::string largest;
  std::size_t most = 0;
  for (const auto& [key, value] : thinner.items()) {
    if (size_of(value) > most) {
      most = size_of(value);
      largest = key;
    }
  }
  throw input_error(
      fmt::format("record of {} bytes is over the limit of {}", text.size(), kRecordLimitBytes),
      fmt::format("{}, key {} holds {} bytes", where, largest, most), "keep less in it");
}

// Errors are left to the write itself, which can say what is wrong.
bool taken(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(file, ignored));
}

// False: one of the two names is taken. The sidecar is taken back unless the record is written.
bool write_pair(const Folder& folder, const fs::path& record, const fs::path& samples, Json& json,
                std::string_view compressed_samples) {
  const std::string where = (folder.path() / record).string();
  const Record checked(json, where);
  json["samples"] = nullptr;
  Json thinner = json;
  const std::string of_ranks = thin(thinner, kRecordLimitBytes - kSamplesBytes, &size_of);
  std::string beside = of_ranks.empty() ? "" : gzip(of_ranks);
  beside += compressed_samples;
  if (!beside.empty()) {
    thinner["samples"] = {{"file", samples.filename().string()},
                          {"xxh3", hash_hex(beside)},
                          {"bytes", beside.size()}};
  }
  const std::string text = record_text(thinner, where);
  if (!beside.empty() && !folder.create_file(samples, beside)) return false;
  const auto take_back = [&] {
    if (!beside.empty()) folder.remove(samples);
  };
  try {
    if (folder.create_file(record, text)) return true;
  } catch (const Error&) {
    take_back();
    throw;
  }
  take_back();
  return false;
}

// {repeat, attempt} of "3.1.json".
std::optional<std::pair<int, int>> record_name(const fs::path& file) {
  const auto parts = split(file.filename().string(), '.');
  if (parts.size() != 3 || parts[2] != "json") return std::nullopt;
  const auto repeat = to_integer(parts[0]), attempt = to_integer(parts[1]);
  if (!repeat || !attempt || *repeat < 1 || *attempt < 1) return std::nullopt;
  const std::pair numbers(static_cast<int>(*repeat), static_cast<int>(*attempt));
  // Not so of "01.1.json" and of a number that no record has.
  const bool is_ours = file.filename() == fmt::format("{}.{}.json", numbers.first, numbers.second);
  return is_ours ? std::optional(numbers) : std::nullopt;
}

// A file of a record, and its real place, which says whether it was read before.
struct Found {
  fs::path file, real;
};

// The name of the record must agree with what it says.
void check_name(const Record& record, const fs::path& file) {
  const auto name = record_name(file);
  if (!name || *name == std::pair(record->repeat, record->attempt)) return;
  throw input_error(
      fmt::format("the record says it is repeat {}, attempt {}, but its name says otherwise",
                  record->repeat, record->attempt),
      file.string() + ", keys /repeat and /attempt", "remove it if it is a copy");
}

fs::path real_path(const fs::path& file) {
  std::error_code code;
  fs::path real = fs::canonical(file, code);
  return code ? file : real;
}

class Loader {
 public:
  explicit Loader(RecordParts parts) : parts_(parts) {}

  // Reads several at a time, and takes them in the order given.
  void add_files(const std::vector<Found>& files) {
    std::vector<const fs::path*> wanted;
    for (const Found& found : files) {
      if (paths_.insert(found.real.string()).second) wanted.push_back(&found.file);
    }
    std::vector<Answer> answers(wanted.size());
    std::atomic<std::size_t> next = 0;
    const auto read_some = [&] {
      for (std::size_t i = next++; i < wanted.size(); i = next++) answers[i] = read(*wanted[i]);
    };
    {
      std::vector<std::future<void>> others;
      try {
        while (others.size() + 1 < readers(wanted.size())) {
          others.push_back(std::async(std::launch::async, read_some));
        }
      } catch (const std::system_error&) {  // no more threads here: it takes longer
      }
      read_some();
      for (std::future<void>& other : others) other.get();
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) take(*wanted[i], answers[i]);
  }

  void add_published(const fs::path& folder) {
    if (!paths_.insert(real_path(folder).string()).second) return;
    try {
      for (Record& record : read_published(folder)) content_.records.push_back(std::move(record));
    } catch (const Error& error) {
      content_.rejected.push_back({folder / kPublishedDescription, error.what()});
    }
  }

  void add_unreadable(Rejected folder) {
    if (paths_.insert(folder.file.string()).second) content_.rejected.push_back(std::move(folder));
  }

  StoreContent take() {
    drop_superseded_imports();
    return std::move(content_);
  }

 private:
  // A file that was imported again into its study, with other options.
  void drop_superseded_imports() {
    std::map<std::string, std::int64_t> newest;
    const auto key = [](const Record& record) {
      const ImportFacts& imported = *record->provenance.imported;
      const fs::path study = fs::path(record.where()).parent_path().parent_path();
      return study.string() + "\n" + imported.format + "\n" + imported.xxh3;
    };
    const auto generation = [](const Record& record) {
      return record->provenance.imported->generation.value_or(1);
    };
    for (const Record& record : content_.records) {
      if (!record->provenance.imported) continue;
      std::int64_t& last = newest[key(record)];
      last = std::max(last, generation(record));
    }
    std::erase_if(content_.records, [&](const Record& record) {
      return record->provenance.imported && generation(record) < newest.at(key(record));
    });
  }

  struct Answer {
    std::optional<Record> record;
    std::string refusal;
  };

  // Threads pay off from some hundred files; a login node is everybody's.
  static std::size_t readers(std::size_t files) {
    constexpr std::size_t kFilesOfAThread = 256, kMostThreads = 4;
    return std::min({files / kFilesOfAThread + 1, kMostThreads,
                     static_cast<std::size_t>(std::max(1U, std::thread::hardware_concurrency()))});
  }

  Answer read(const fs::path& file) const {
    Answer answer;
    try {
      answer.record.emplace(read_record(file, parts_));
      check_name(*answer.record, file);
    } catch (const Error& error) {
      answer = {std::nullopt, error.what()};
    }
    return answer;
  }

  void take(const fs::path& file, Answer& answer) {
    if (!answer.record) {
      content_.rejected.push_back({file, std::move(answer.refusal)});
      return;
    }
    try {
      if ((*answer.record)->kind == "measured") check_first(*answer.record);
      content_.records.push_back(std::move(*answer.record));
    } catch (const Error& error) {
      content_.rejected.push_back({file, error.what()});
    }
    answer.record.reset();
  }

  // The same run twice would count as two, whatever attempt its copy is. The two sides of a gate
  // are alike in all but their times.
  void check_first(const Record& record) {
    if (record->session.empty()) return;
    const auto key =
        std::tuple(record->session, record->study, record->point, record->repeat,
                   record->completed() ? 0 : record->attempt, record->provenance.started_at,
                   record->build(), record->fit_seconds());
    const auto [it, first] = seen_.emplace(key, record.where());
    if (first) return;
    throw input_error(fmt::format("the record is of the same run as {} (session {}, point {})",
                                  it->second, record->session, record->point),
                      record.where() + ", keys /session, /point and /repeat", "remove the copy");
  }

  RecordParts parts_;
  StoreContent content_;
  std::set<std::string> paths_;
  using Key = std::tuple<std::string, std::string, std::string, int, int, std::string, std::string,
                         std::optional<double>>;
  std::map<Key, std::string> seen_;
};

// A study's folders, links among them followed: to each folder once, so that no loop is walked
// round, and to what is no link first, so that a folder has its own name where it has one.
class Walk {
 public:
  explicit Walk(const fs::path& folder) {
    enter(folder, true);
    for (; !links_.empty(); links_.pop_front()) enter(fs::path(links_.front()), false);
  }

  // By folder, repeat and attempt.
  std::vector<Found> records() {
    std::vector<Found> all;
    for (auto& [folder, files] : records_) {
      std::ranges::sort(files, {}, &Named::name);
      for (Named& each : files) all.push_back(std::move(each.found));
    }
    return all;
  }

  std::vector<fs::path> published;
  std::vector<Rejected> unreadable;  // folders

 private:
  struct Named {
    std::pair<int, int> name;
    Found found;
  };

  void enter(const fs::path& folder, bool is_named) {
    std::error_code code;
    const fs::path known = fs::canonical(folder, code), real = code ? folder : known;
    if (!code && !entered_.insert(real).second) return;
    if (is_published(folder)) published.push_back(folder);
    std::vector<fs::path> folders, links;
    std::vector<Named> files;
    fs::directory_iterator entry(folder, code);
    for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
      const fs::path& path = entry->path();
      if (entry->is_directory(ignored_)) {
        (entry->is_symlink(ignored_) ? links : folders).push_back(path);
      } else if (const auto name = record_name(path)) {
        const bool is_link = entry->is_symlink(ignored_);
        files.push_back({*name, {path, is_link ? real_path(path) : real / path.filename()}});
      }
    }
    if (code) {
      const Error error(ErrorKind::input, "the folder cannot be read: " + code.message(),
                        folder.string(), "check its permissions");
      if (is_named) throw Error(error);
      unreadable.push_back({folder, error.what()});
    }
    if (!files.empty()) records_[files.front().found.file.parent_path()] = std::move(files);
    std::sort(links.begin(), links.end());
    links_.insert(links_.end(), links.begin(), links.end());
    for (const fs::path& each : folders) enter(each, false);
  }

  std::error_code ignored_;
  std::set<fs::path> entered_;
  std::deque<fs::path> links_;
  std::map<fs::path, std::vector<Named>> records_;
};

// Where studies of that name are, as they are named by hand.
std::string place_of_study(const fs::path& name) {
  if (name.has_parent_path()) return "check the path";
  for (const std::string& folder :
       {configuration().settings.results.value, std::string("results/reference")}) {
    const fs::path place = folder / name;
    if (path_exists(place) || !shipped_path(place).empty()) {
      return "did you mean " + place.string() + "?";
    }
  }
  return "check the path";
}

void load_into(Loader& loader, const fs::path& folder) {
  if (!path_exists(folder)) {
    if (const fs::path shipped = shipped_path(folder); !shipped.empty()) {
      return load_into(loader, shipped);
    }
    throw input_error("no such study", folder.string(), place_of_study(folder));
  }
  if (!fs::is_directory(folder)) return loader.add_files({{folder, real_path(folder)}});
  Walk walk(folder);
  std::sort(walk.published.begin(), walk.published.end());
  loader.add_files(walk.records());
  for (const fs::path& each : walk.published) loader.add_published(each);
  for (Rejected& each : walk.unreadable) loader.add_unreadable(std::move(each));
}

const std::vector<FieldFilter> kOutcome = {
    {"schema"},
    {"kind"},
    {"study"},
    {"point"},
    {"repeat"},
    {"attempt"},
    {"session"},
    {"round"},
    {"status"},
    {"reason"},
    {"parameters", {{"workload"}, {"backend"}, {kControl}}},
    {"identity"},
    {"layout"},
    {"provenance",
     {{"version"},
      {"commit"},
      {"dirty"},
      {"allocation"},
      {"screened"},
      {"cpu_model"},
      {"machine"},
      {"data_hash"},
      {"backend_used"},
      {"program"}}},
    {"timing", {{"fit_seconds"}, {"setup_seconds"}, {"evaluation_seconds"}}},
    {"throughput", {{"samples_per_second"}}},
    {"gpus"},
    {"collective"}};

}  // namespace

StoreContent load_store(const fs::path& folder, RecordParts parts) {
  return load_stores({folder}, parts);
}

StoreContent load_stores(const std::vector<fs::path>& folders, RecordParts parts) {
  Loader loader(parts);
  for (const fs::path& folder : folders) load_into(loader, folder);
  return loader.take();
}

Store::Store(fs::path study_folder) : folder_(std::move(study_folder)) {}

fs::path Store::write(const std::string& point_folder, int repeat, Json json,
                      std::string_view compressed_samples) const {
  std::optional<Folder> opened;
  const Folder& study = study_ ? *study_ : opened.emplace(folder_);
  json["repeat"] = repeat;
  for (int attempt = 1;; ++attempt) {
    const fs::path record = point_folder / fs::path(fmt::format("{}.{}.json", repeat, attempt));
    const fs::path samples = samples_file(record);
    if (taken(folder_ / record) || taken(folder_ / samples)) continue;
    json["attempt"] = attempt;
    if (write_pair(study, record, samples, json, compressed_samples)) return folder_ / record;
  }
}

fs::path Store::write(const UnfinishedRun& run) const {
  return write(run.point_folder, run.repeat, to_json(make_record(run)), "");
}

fs::path samples_file(fs::path record) {
  return record.replace_extension(".steps.gz");
}

void write_record_file(const fs::path& file, Json json, std::string_view compressed_samples) {
  if (!json.contains("repeat")) json["repeat"] = 1;
  if (!json.contains("attempt")) json["attempt"] = 1;
  const fs::path samples = samples_file(file);
  const Folder folder(file.has_parent_path() ? file.parent_path() : ".");
  if (taken(file) ||
      !write_pair(folder, file.filename(), samples.filename(), json, compressed_samples)) {
    throw input_error("the record exists already, and a record is never overwritten",
                      taken(file) ? file.string() : samples.string(),
                      "choose another name or move it away");
  }
}

Record::Record(const Json& json, std::string where)
    : json_(std::make_shared<Json>(json)),
      where_(std::move(where)),
      facts_(std::make_shared<RunRecord>(parse_run_record(json, where_))) {}

Record::Record(RunRecord facts, const std::filesystem::path& file)
    : where_(file.string()), facts_(std::make_shared<RunRecord>(std::move(facts))) {}

const Json& Record::json() const {
  if (!json_) {
    const std::string text = read_text(where_, kRecordLimitBytes);
    json_ = std::make_shared<Json>(JsonDocument(where_, text).value());
  }
  return *json_;
}

Record read_record(const std::filesystem::path& file, RecordParts parts) {
  const std::string text = read_text(file, kRecordLimitBytes), where = file.string();
  if (parts == RecordParts::outcome) {
    const std::string outcome = extract_fields(text, kOutcome);
    // Without positions, which cost as much as the rest: where it is no JSON the whole text says
    // so.
    const Json json = Json::parse(outcome, nullptr, false);
    if (!json.is_discarded()) return Record(parse_run_record(json, where), file);
  }
  return Record(parse_run_record(JsonDocument(where, text).value(), where), file);
}

}  // namespace paceline
