#include "results/archive/study_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/pattern.h"
#include "engine/core/text.h"
#include "engine/core/unpack_limit.h"
#include "engine/facts/rank.h"
#include "results/names.h"
#include "results/run_record.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr int kArchiveSchema = 1;
constexpr char kManifestFile[] = "manifest.json", kSamplesEnding[] = ".steps.gz";
constexpr std::size_t kMostOfManifest = 64 << 20, kMostOfPlan = 64 << 20, kMostOfSpec = 4 << 20,
                      kMostOfSamples = 1 << 30;
// Records of a study are alike and shrink to a hundredth at most; a bomb to a thousandth.
constexpr std::size_t kMostRatio = 500;
constexpr char kMistrust[] = "do not trust it: get it again from who made it";

// Whether a folder of this name stays where an archive is unpacked.
bool is_folder_name(const std::string& name) {
  constexpr std::size_t kMostBytes = 255;
  return !name.empty() && name.size() <= kMostBytes && name.front() != '.' &&
         std::none_of(name.begin(), name.end(),
                      [](unsigned char c) { return c < ' ' || c == 127 || c == '/' || c == '\\'; });
}

// The largest that a file of this name may be; 0: it has no place in a study.
std::size_t size_limit(const std::string& name) {
  constexpr std::size_t kLongestName = 280;
  thread_local const Pattern run(
      "[A-Za-z0-9=,_+%-][A-Za-z0-9=,._+%-]*/[1-9][0-9]{0,6}\\.[1-9][0-9]{0,6}\\.(json|steps\\.gz)");
  if (name == kExpectedRunsFile) return kMostOfPlan;
  if (name == kSpecFile) return kMostOfSpec;
  if (name.size() > kLongestName || !run.match(name)) return 0;
  return name.ends_with(kSamplesEnding) ? kMostOfSamples : kRecordLimitBytes;
}

using Tar = std::unique_ptr<archive, decltype(&archive_free)>;

const char* filter_for(const std::string& file) {
  for (const auto& [ending, filter] :
       {std::pair{".tar.zst", "zstd"}, {".tar.gz", "gzip"}, {".tar.xz", "xz"}}) {
    if (file.ends_with(ending)) return filter;
  }
  throw usage_error("an archive's name must end in .tar.zst, .tar.gz or .tar.xz", file,
                    "give another name");
}

// The same entries give the same bytes: there are no times and no owners.
class TarWriter {
 public:
  explicit TarWriter(const fs::path& file)
      : file_(file.string()),
        filter_(filter_for(file_)),
        temporary_(fmt::format("{}.{}.tmp", file_, getpid())),
        output_(temporary_),
        tar_(archive_write_new(), archive_free) {
    if (path_exists(file)) refuse_existing();
    // A warning: it would call a program, which may not be there.
    if (archive_write_add_filter_by_name(tar_.get(), filter_) != ARCHIVE_OK) {
      throw usage_error(fmt::format("libarchive cannot write {} on this machine", filter_), file_,
                        "give a name that ends otherwise (.tar.zst, .tar.gz, .tar.xz)");
    }
    archive_write_set_filter_option(tar_.get(), "gzip", "timestamp", nullptr);
    check(archive_write_set_format_pax_restricted(tar_.get()));
    check(archive_write_set_bytes_in_last_block(tar_.get(), 1));  // nothing after the last byte
    check(archive_write_open_filename(tar_.get(), temporary_.c_str()));
  }

  void add(const std::string& name, const std::string& content) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), 0, 0);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
    check(archive_write_header(tar_.get(), entry.get()));
    const auto written = archive_write_data(tar_.get(), content.data(), content.size());
    check(written == static_cast<la_ssize_t>(content.size()) ? ARCHIVE_OK : ARCHIVE_FATAL);
  }

  // The file has its name only now.
  void finish() {
    check(archive_write_close(tar_.get()));
    output_.finish();
    if (give_name(temporary_, file_)) return;
    fs::remove(temporary_);
    refuse_existing();
  }

 private:
  [[noreturn]] void refuse_existing() const {
    throw input_error("the file exists already", file_,
                      "an archive never replaces a file: give another name");
  }

  void check(int code) const {
    if (code == ARCHIVE_OK) return;
    const std::string why = std::generic_category().message(archive_errno(tar_.get()));
    throw input_error("the archive cannot be written: " + why, file_, "choose another place");
  }

  std::string file_;
  const char* filter_;
  fs::path temporary_;
  NewFile output_;  // creates, syncs and removes the file; libarchive writes it
  Tar tar_;
};

// Reads the entries in their order. Its errors name the archive and the entry.
class TarReader {
 public:
  explicit TarReader(const fs::path& file)
      : file_(file.string()), where_(file_), tar_(archive_read_new(), archive_free) {
    if (!path_exists(file)) refuse("no such file", "check the path");
    if (!fs::is_regular_file(file)) {  // it is read twice
      refuse("this is not a regular file", "name a file of paceline archive");
    }
    archive_read_support_filter_zstd(tar_.get());
    archive_read_support_filter_gzip(tar_.get());
    archive_read_support_filter_xz(tar_.get());
    archive_read_support_format_tar(tar_.get());
    check(archive_read_open_filename(tar_.get(), file_.c_str(), std::size_t{1} << 16));
  }

  // The name of the next entry, which is a plain file. Empty at the end.
  std::optional<std::string> next() {
    where_ = file_;
    const int code = archive_read_next_header(tar_.get(), &entry_);
    if (code == ARCHIVE_EOF) return std::nullopt;
    check(code);
    const char* name = archive_entry_pathname(entry_);
    where_ += fmt::format(", entry {}", name ? name : "without a name");
    if (!name || archive_entry_filetype(entry_) != AE_IFREG || archive_entry_hardlink(entry_)) {
      refuse("the archive holds a link, a folder or a device");
    }
    return name;
  }

  std::string content(std::size_t limit) {
    const auto bytes = static_cast<std::size_t>(archive_entry_size(entry_));
    if (bytes > limit) refuse(fmt::format("the entry is larger than {} bytes", limit));
    std::string text(bytes, '\0');
    const la_ssize_t got = archive_read_data(tar_.get(), text.data(), bytes);
    check(got == static_cast<la_ssize_t>(bytes) ? ARCHIVE_OK : ARCHIVE_FATAL);
    return text;
  }

  [[noreturn]] void refuse(const std::string& what, const char* fix = kMistrust) const {
    throw input_error(what, where_, fix);
  }

  const std::string& where() const { return where_; }  // "a.tar.zst", "a.tar.zst, entry x"

 private:
  void check(int code) const {
    if (code == ARCHIVE_OK) return;
    const char* why = archive_error_string(tar_.get());
    refuse(std::string("the archive cannot be read: ") + (why ? why : "it ends too early"),
           "check the path, or get it again");
  }

  std::string file_, where_;
  Tar tar_;
  archive_entry* entry_ = nullptr;
};

struct ManifestFile {
  std::string name, xxh3;
  std::size_t bytes = 0;
};

// The study's name, and its files in the archive's order.
std::pair<std::string, std::vector<ManifestFile>> read_manifest(TarReader& tar) {
  const std::string entry = tar.next().value_or("");
  if (!entry.ends_with(std::string("/") + kManifestFile)) {
    tar.refuse("the archive does not begin with a manifest", "name one of paceline archive");
  }
  const JsonDocument document(tar.where(), tar.content(kMostOfManifest));
  const Json& json = document.value();
  try {
    if (json.at("schema") != kArchiveSchema) {
      tar.refuse("the archive is of another version of paceline", "merge it with a newer one");
    }
    const auto study = json.at("study").get<std::string>();
    if (!is_folder_name(study)) tar.refuse("the study's name cannot be a folder's");
    if (entry != study + "/" + kManifestFile) tar.refuse("the manifest is of another study");
    std::vector<ManifestFile> files;
    std::set<std::string> seen;
    for (const Json& listed : json.at("files")) {
      ManifestFile& file = files.emplace_back();
      listed.at("name").get_to(file.name);
      listed.at("xxh3").get_to(file.xxh3);
      const Json& bytes = listed.at("bytes");
      const std::size_t limit = size_limit(file.name);
      if (limit == 0) tar.refuse("the file " + file.name + " has no place in a study");
      if (!seen.insert(file.name).second) tar.refuse("the file " + file.name + " is listed twice");
      if (!bytes.is_number_unsigned() || bytes.get_to(file.bytes) > limit) {
        tar.refuse(fmt::format("the file {} is said to have {} bytes, over the limit of {}",
                               file.name, json_text(bytes), limit));
      }
    }
    return {study, files};
  } catch (const Json::exception&) {
    tar.refuse("the manifest lacks something, or a value of it has the wrong type");
  }
}

ExpectedRuns parse_plan(const TarReader& tar, const std::string& text, const std::string& study) {
  ExpectedRuns plan = parse_expected_runs(tar.where(), text);
  if (plan.study != study) tar.refuse("the plan is of study " + plan.study + ", not " + study);
  return plan;
}

// `recorded`: the workloads of the records.
void check_workload(const ExpectedRuns& plan, const std::set<std::string>& recorded,
                    const std::string& where) {
  const bool fits =
      recorded.empty() ? std::ranges::count(known_names().workloads, plan.workload, &Name::name) > 0
                       : recorded.contains(plan.workload);
  if (fits) return;
  throw input_error(fmt::format("the plan is of workload \"{}\", {}", plan.workload,
                                recorded.empty() ? "which is not known" : "and no record is"),
                    where, "run the sweep again");
}

void add_workload(const Record& record, std::set<std::string>& recorded) {
  if (!record->is_collective()) recorded.insert(record->workload);
}

ArchivedRun parse_run(const TarReader& tar, const std::string& study, const std::string& name,
                      std::string text, std::string samples) {
  const Record record(JsonDocument(tar.where(), text).value(), tar.where());
  const std::string folder = name.substr(0, name.find('/'));
  if (name != fmt::format("{}/{}.{}.json", folder, record->repeat, record->attempt)) {
    tar.refuse("the record is of another repeat or attempt than its name says");
  }
  if (record->study != study) tar.refuse("the record is of study " + record->study);
  if (!samples.empty() && (!record->samples || record->samples->xxh3 != hash_hex(samples))) {
    tar.refuse("the record does not name its step samples, or with another hash");
  }
  return {record, folder, std::move(text), std::move(samples)};
}

// Whether the sidecar of a record is there and is the one that the record names.
bool has_samples(const Record& record, std::vector<std::string>& notes) {
  if (!record->samples) return false;
  const fs::path file = samples_file(record.where());
  if (path_exists(file) && hash_of_file(file) == record->samples->xxh3) return true;
  notes.push_back(file.string() +
                  ": the step samples differ from their hash in the record, or are gone");
  return false;
}

}  // namespace

ArchivedStudy write_archive(const fs::path& folder, const fs::path& file,
                            const std::string& version,
                            const std::function<StoreContent(StoreContent)>& changed) {
  TarWriter tar(file);
  const fs::path study = study_path(folder);
  const StoreContent store = load_study(study);
  const StoreContent shown = changed ? changed(store) : store;
  ArchivedStudy result;
  for (const Rejected& rejected : shown.rejected) result.notes.push_back(rejected.reason);
  const std::optional<ExpectedRuns> plan = changed ? std::nullopt : read_expected_runs(study);
  result.summary = summarize(plan, shown.records, study.string());
  if (!is_folder_name(result.summary.study)) {
    throw input_error("the records name study \"" + result.summary.study +
                          "\", which an archive cannot have as its folder",
                      study.string(), "remove the records that do; a study's name has no slash");
  }
  if (plan) {
    std::set<std::string> recorded;
    for (const Record& record : store.records) add_workload(record, recorded);
    check_workload(*plan, recorded, (study / kExpectedRunsFile).string());
  }
  Json manifest = {{"schema", kArchiveSchema}, {"version", version}}, files = Json::array();
  manifest.update(to_json(result.summary));
  std::map<std::string, std::string> others;  // texts of changed records, by name
  const auto content_at = [&](const std::string& name, std::size_t limit) {
    const auto other = others.find(name);
    return other == others.end() ? read_text(study / name, limit) : other->second;
  };
  const auto list = [&](const fs::path& path) {
    const std::string name = path.lexically_relative(study).string();
    const std::size_t limit = size_limit(name);
    if (limit == 0) {
      throw input_error("a file of this name has no place in an archive", path.string(),
                        "rename its folder, or move it away");
    }
    const std::string content = content_at(name, limit);
    files.push_back({{"name", name}, {"bytes", content.size()}, {"xxh3", hash_hex(content)}});
  };
  for (const char* name : {kExpectedRunsFile, kSpecFile}) {
    if (!path_exists(study / name)) continue;
    if (!changed) list(study / name);
    if (changed) result.notes.push_back(std::string(name) + ": it may name people and places");
  }
  for (std::size_t i = 0; i < store.records.size(); ++i) {
    const Record& record = store.records[i];
    const fs::path place = record.where();
    const bool has_ranks_apart = changed && *record->ranks;
    if (has_samples(record, result.notes) && !has_ranks_apart) list(samples_file(place));
    if (changed) {
      others[place.lexically_relative(study).string()] = json_text(shown.records[i].json()) + "\n";
    }
    list(place);
  }
  result.files = files.size();
  manifest["files"] = files;
  result.manifest = json_text(manifest, 1) + "\n";
  const std::string prefix = result.summary.study + "/";
  tar.add(prefix + kManifestFile, result.manifest);
  for (const Json& listed : files) {
    const auto name = listed["name"].get<std::string>();
    const std::string content = content_at(name, size_limit(name));
    if (hash_hex(content) != listed["xxh3"].get<std::string>()) {
      throw input_error("the study changed while it was archived", study.string(),
                        "repeat the command");
    }
    tar.add(prefix + name, content);
  }
  tar.finish();
  return result;
}

StudyArchive read_archive(const fs::path& file,
                          const std::function<void(const ArchivedRun&)>& take_run) {
  TarReader tar(file);
  const auto [study, files] = read_manifest(tar);
  UnpackLimit(fs::file_size(file), file.string(), kMostRatio)
      .check(summed(files, &ManifestFile::bytes));
  StudyArchive archive{file, study, {}, {}};
  std::string samples, owner, plan_entry;  // owner: the record that must come next
  std::set<std::string> recorded;
  for (const auto& [name, xxh3, size] : files) {
    if (tar.next() != study + "/" + name) {
      tar.refuse("the manifest lists " + name + " here", "get it again");
    }
    std::string content = tar.content(size);
    if (hash_hex(content) != xxh3) {
      tar.refuse("the content differs from its hash in the manifest", "get it again");
    }
    if (!owner.empty() && name != owner) tar.refuse("no record follows its step samples");
    owner.clear();
    if (name == kExpectedRunsFile) {
      archive.plan = parse_plan(tar, content, study);
      plan_entry = tar.where();
    } else if (name == kSpecFile) {
      archive.spec = std::move(content);
    } else if (name.ends_with(kSamplesEnding)) {
      owner = name.substr(0, name.size() - std::string_view(kSamplesEnding).size()) + ".json";
      samples = std::move(content);
    } else {
      const ArchivedRun run =
          parse_run(tar, study, name, std::move(content), std::exchange(samples, ""));
      add_workload(run.record, recorded);
      if (take_run) take_run(run);
    }
  }
  if (!owner.empty()) tar.refuse("no record follows its step samples");
  if (tar.next()) tar.refuse("the entry is not in the manifest");
  if (archive.plan) check_workload(*archive.plan, recorded, plan_entry);
  return archive;
}

}  // namespace paceline
