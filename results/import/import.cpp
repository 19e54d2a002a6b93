#include "results/import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "results/import/formats.h"
#include "results/import/lines.h"
#include "results/run_record.h"
#include "results/store.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLargestFile = std::size_t{256} << 20;
constexpr std::size_t kLongestFolder = 200, kMostRecords = 20000, kMostHosts = 256,
                      kMostText = 16 << 10;
constexpr std::string_view kWarning = "warning: ";

// The study becomes a folder.
void check_study_name(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
  if (plain && !name.empty() && !name.starts_with(".") && name.size() <= 100) return;
  throw usage_error("the name \"" + name + "\" cannot be a folder's", "--study",
                    "use letters, digits, - _ .");
}

// The first of everything that a record must have and this one lacks.
void check_complete(const Json& json, const ForeignFile& file, const ImportedRun& run) {
  if (!json.contains("/parameters/gpus"_json_pointer)) {
    refuse_line(file, run.line, "the file does not say how many replicas there were",
                "add --set gpus=N");
  }
  if (run.record.collective && run.record.collective->operation.empty() &&
      !json.contains("/collective/operation"_json_pointer)) {
    refuse_line(file, run.line, "the file does not say which collective it is",
                "add --set operation=all_reduce or another");
  }
}

// --set for what the file does not say: parameters and the operation the file knows better. Returns
// what was not set. A table has taken them already, and its columns add to them.
std::vector<std::string> set_facts(Json& json, const std::vector<std::string>& facts,
                                   bool is_table) {
  std::vector<std::string> notes;
  const Json parameters = json["parameters"], stated_layout = json["layout"];
  const Json operation = find_member(find_member(json, "collective"), "operation");
  const auto find_stated = [&](const std::string& key) -> Json {
    if (key == "workload" || (key == "operation" && operation == "")) return {};
    if (key == "operation") return operation;
    const bool in_layout =
        key != "gpus" && has_role(key, Role::layout) && stated_layout.contains(key);
    return find_member(in_layout ? stated_layout : parameters, key.c_str());
  };
  for (const std::string& fact : facts) {
    const std::string key = fact.substr(0, fact.find('='));
    const Json stated = find_stated(key);
    if (stated.is_null()) {
      if (!is_table) set_value(json, fact);
      continue;
    }
    Json given = Json::object();
    set_value(given, fact);
    const Json& value = given.at(Json::json_pointer(find_record_key(key)->to.front()));
    if (value == stated) continue;
    notes.push_back(fmt::format("{} is {} where the file says so, not {}", key,
                                stated.is_string() ? stated.get<std::string>() : json_text(stated),
                                fact.substr(key.size() + 1)));
  }
  Json& layout = json["layout"];
  if (layout.contains("nodes") && layout["nodes"].is_number() && layout["gpus"] < layout["nodes"]) {
    layout.erase("nodes");
    json["parameters"].erase("nodes");
    notes.push_back(
        fmt::format("nodes is left out of records of {} ranks", json_text(layout["gpus"])));
  }
  return notes;
}

// Enough to see what it is.
std::string read_beginning(const std::string& name) {
  std::string text(std::size_t{1} << 20, '\0');
  std::ifstream stream(name, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return std::string(without_byte_order_mark(text));
}

// Texts of the file go to terminals and pages.
void make_harmless(Json& json) {
  if (json.is_string()) json = printable(json.get<std::string>());
  if (!json.is_structured()) return;
  for (auto& each : json) make_harmless(each);
}

// Counts texts outside lists only, as lists are thinned when a record is written.
std::size_t bytes_of_texts(const Json& json) {
  if (json.is_string()) return json.get_ref<const std::string&>().size();
  std::size_t bytes = 0;
  if (json.is_object()) {
    for (const auto& each : json) bytes += bytes_of_texts(each);
  }
  return bytes;
}

// Equal of two imports of the same bytes with the same options.
std::string canonical_content(Json json) {
  // Lists over many ranks are folded when a record is written.
  for (const char* key : {"repeat", "attempt", "samples", "phases", "ranks"}) json.erase(key);
  if (json.contains("timing")) json["timing"].erase("step_seconds");
  for (const char* key : {"file", "imported_at", "imported_by", "generation"}) {
    json["provenance"]["imported"].erase(key);
  }
  json["provenance"].erase("source");  // the file's name
  return hash_hex(json_text(json));
}

// Names a file as a format reads it, whatever options it is imported with.
std::string file_key(const Json& json) {
  const Json& imported = json.at("provenance").at("imported");
  return imported.value("format", "") + " " + imported.value("xxh3", "");
}

// "all_reduce,in-place,gpus=8", "resnet,gpus=16".
std::string record_folder(const Record& record) {
  std::vector<std::string> parts = {record->workload};
  if (record->is_collective()) {
    parts = {record->collective->operation, record->collective->placement};
  }
  parts.push_back(record->parameters.folder());
  std::erase(parts, "");
  std::string folder = join(parts, ",");
  for (char& c : folder) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                       std::string_view("=,._+-%").find(c) != std::string_view::npos;
    if (!plain) c = '-';
  }
  if (folder.starts_with(".")) folder.front() = '-';
  if (folder.size() <= kLongestFolder) return folder;
  return folder.substr(0, kLongestFolder - 17) + "-" + hash_hex(folder);
}

}  // namespace

struct Import::Source {
  struct Entry {
    Json json;
    std::string folder, content;  // content: a hash of all that an equal import would give
    std::string samples;
    std::size_t line = 1;
  };
  ImportedFile reported;
  std::vector<Entry> entries;
};

Import::~Import() = default;

Import::Import(const ImportRequest& request) : study_(request.results / request.study) {
  check_study_name(request.study);
  const ImportFormat& format = import_format_named(request.format);
  if (!request.columns.empty() && !format.is_table) {
    throw usage_error("only a csv table has columns to choose", "--column",
                      "leave it out, or import csv");
  }
  Json scratch = Json::object();
  for (const std::string& each : request.set) set_value(scratch, each);
  if (format.read_together != nullptr) sources_.push_back(read_together(request, format));
  for (const std::string& name : request.files) {
    if (format.read_together == nullptr) sources_.push_back(read(name, request, format));
    for (const std::string& note : sources_.back().reported.notes) {
      if (!request.strict || !ImportedFile::is_warning(note)) continue;
      throw input_error(note.substr(kWarning.size()), name,
                        "leave out --strict to import it all the same");
    }
  }
}

Import::Source Import::read(const std::string& name, const ImportRequest& request,
                            const ImportFormat& format) {
  std::error_code unknown;
  if (fs::is_regular_file(name, unknown) && fs::file_size(name, unknown) > kLargestFile) {
    throw input_error("the file is larger than " + format_bytes(static_cast<double>(kLargestFile)),
                      name, "split it");
  }
  const std::string text = read_text(name, kLargestFile);
  require_utf8(text, name);
  std::vector<std::string> label_notes;
  const ForeignFile file{name, without_labels(text, label_notes), request.columns, request.set};
  check_format(format, file);
  ImportContent content = format.read(file);
  content.notes.insert(content.notes.begin(), label_notes.begin(), label_notes.end());
  return make_source(file, hash_hex(text), std::move(content), request, format);
}

Import::Source Import::read_together(const ImportRequest& request, const ImportFormat& format) {
  ForeignFile file{request.files.front(), "", {}, request.set};
  std::string hashes;
  for (const std::string& name : request.files) {
    hashes += hash_of_file(name);
    const std::string beginning = read_beginning(name);
    if (!beginning.starts_with("\x1f\x8b")) check_format(format, {name, beginning, {}, {}});
  }
  ImportContent content = format.read_together(request.files, request.set);
  if (request.files.size() > 1) file.name += fmt::format(" and {} more", request.files.size() - 1);
  return make_source(file, request.files.size() > 1 ? hash_hex(hashes) : hashes, std::move(content),
                     request, format);
}

Import::Source Import::make_source(const ForeignFile& file, const std::string& hash,
                                   ImportContent content, const ImportRequest& request,
                                   const ImportFormat& format) {
  if (content.runs.size() > kMostRecords) {
    throw input_error(
        fmt::format("the file gives {} records, more than {}", content.runs.size(), kMostRecords),
        file.name, "split it");
  }
  Source source;
  source.reported = {file.name, content.tool, {}, content.notes};
  const std::string now = utc_time_stamp();
  std::set<std::string> notes;
  for (ImportedRun& run : content.runs) {
    RunRecord& record = run.record;
    record.kind = "imported";
    record.study = request.study;
    if (record.session.empty()) record.session = hash;
    if (record.each_rank->size() > kMostHosts) {
      std::vector<std::string> hosts = each_once(record.host_names());
      hosts.resize(record.each_rank->size());
      for (std::size_t r = 0; r < hosts.size(); ++r) (*record.each_rank)[r].host = hosts[r];
    }
    ImportFacts& facts = record.provenance.imported.emplace();
    facts = {format.name,
             content.tool,
             fs::path(file.name).filename().string(),
             hash,
             static_cast<std::int64_t>(run.line),
             now,
             request.imported_by};
    record.provenance.source = facts.tool + ": " + facts.file;
    Json json = to_json(record);
    for (const std::string& each : set_facts(json, request.set, format.is_table)) {
      notes.insert(each);
    }
    make_harmless(json);
    check_complete(json, file, run);
    for (const char* each : {"nodes", "cpus_per_task"}) {
      if (json["layout"].contains(each)) json["parameters"][each] = json["layout"][each];
    }
    Record checked(json, place_in(file, run.line));
    if (!checked->is_collective()) json["point"] = checked->parameters.text();
    json["identity"] = identity_hash(checked->workload, checked->parameters);
    if (const std::size_t bytes = bytes_of_texts(json); bytes > kMostText) {
      refuse_line(file, run.line,
                  fmt::format("its texts have {}, more than a record can hold",
                              format_bytes(static_cast<double>(bytes))),
                  "shorten them");
    }
    source.entries.push_back(
        {json, record_folder(checked), canonical_content(json), run.samples, run.line});
  }
  source.reported.notes.insert(source.reported.notes.end(), notes.begin(), notes.end());
  return source;
}

std::vector<ImportedFile> Import::write(bool dry_run) const {
  std::set<std::string> files, contents;
  for (const Source& source : sources_) {
    for (const Source::Entry& entry : source.entries) {
      files.insert(file_key(entry.json));
      contents.insert(entry.content);
    }
  }
  std::map<std::string, std::vector<fs::path>> known;  // by content
  std::map<std::string, int> repeats;                  // the last one of a folder
  struct Earlier {
    std::int64_t generation = 1;
    bool differs = false;
  };
  std::map<std::string, Earlier> earlier;  // by file_key()
  if (path_exists(study_)) {
    for (const Record& record : load_store(study_).records) {
      const fs::path file = record.where();
      int& last = repeats[file.parent_path().filename().string()];
      last = std::max(last, record->repeat);
      if (!record->provenance.imported || !files.contains(file_key(record.json()))) continue;
      const std::string content = canonical_content(record.json());
      Earlier& before = earlier[file_key(record.json())];
      before.generation = record->provenance.imported->generation.value_or(1);
      before.differs = before.differs || !contents.contains(content);
      known[content].push_back(file);
    }
  }
  const Store store(study_);
  std::vector<ImportedFile> reported;
  for (const Source& source : sources_) {
    reported.push_back(source.reported);
    std::map<std::string, std::size_t> equals;  // runs of this file, by content
    bool supersedes = false;
    for (const Source::Entry& entry : source.entries) {
      const Earlier before = earlier[file_key(entry.json)];
      supersedes = supersedes || before.differs;
      if (before.differs) known.erase(entry.content);
    }
    if (supersedes) reported.back().notes.push_back("what it gave before is superseded");
    for (const Source::Entry& entry : source.entries) {
      std::vector<fs::path>& found = known[entry.content];
      if (const std::size_t nth = equals[entry.content]++; nth < found.size()) {
        reported.back().records.push_back({found[nth], entry.line, false});
        continue;
      }
      const int repeat = ++repeats[entry.folder];
      Json json = entry.json;
      if (const Earlier& before = earlier[file_key(json)]; before.generation + before.differs > 1) {
        json["provenance"]["imported"]["generation"] = before.generation + before.differs;
      }
      const fs::path file = dry_run ? study_ / entry.folder / fmt::format("{}.1.json", repeat)
                                    : store.write(entry.folder, repeat, json, entry.samples);
      found.push_back(file);  // the same file may be named twice
      reported.back().records.push_back({file, entry.line, true});
    }
  }
  return reported;
}

const std::vector<ImportFormat>& import_formats() {
  static const std::vector<ImportFormat> all = [] {
    std::vector<ImportFormat> formats = registered_formats();
    std::stable_partition(formats.begin(), formats.end(),
                          [](const ImportFormat& format) { return !format.is_table; });
    return formats;
  }();
  return all;
}

const ImportFormat& import_format_named(const std::string& name) {
  return row_named(import_formats(), &ImportFormat::name, name, "format", "import");
}

void check_format(const ImportFormat& format, const ForeignFile& file) {
  if (file.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw input_error("the file is empty", file.name, "name another file");
  }
  // What looks like a table may be of another format.
  const bool is_one = format.is_one(file.text);
  if (is_one && !format.is_table) return;
  for (const ImportFormat& other : import_formats()) {
    if (&other == &format || !other.is_one(file.text)) continue;
    throw input_error(
        std::string("the file is not ") + format.what + ", but looks like " + other.what, file.name,
        std::string("try: paceline import ") + other.name);
  }
  if (is_one) return;
  throw input_error(std::string("the file is not ") + format.what, file.name,
                    "see docs/import.md for what each format looks like");
}

bool ImportedFile::is_warning(const std::string& note) {
  return note.starts_with(kWarning);
}

std::string ImportedFile::text(bool dry_run) const {
  const std::size_t added = count_where(records, &ImportedRecord::is_new);
  const std::size_t known = records.size() - added;
  std::string text = name + ": ";
  if (added > 0) {
    text += fmt::format("{} {} from {}", counted(added, "record"),
                        dry_run ? "would be imported" : "imported", tool);
  }
  if (known > 0) {
    text += fmt::format("{}{} imported before, skipped", added > 0 ? "; " : "",
                        counted(known, "record"));
  }
  text += "\n";
  for (const std::string& note : notes) {
    if (!is_warning(note)) text += "  " + note + "\n";
  }
  return text;
}

Json ImportedFile::json() const {
  Json rows = Json::array();
  for (const ImportedRecord& record : records) {
    rows.push_back(
        {{"record", record.file.string()}, {"line", record.line}, {"new", record.is_new}});
  }
  return {{"file", name}, {"tool", tool}, {"records", rows}, {"notes", notes}};
}

}  // namespace paceline
