#include "results/archive/study_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "results/archive/tar.h"
#include "results/parameters.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr int kArchiveSchema = 1;
constexpr char kManifestFile[] = "manifest.json", kSamplesEnding[] = ".steps.gz";
constexpr std::size_t kMostOfManifest = 64 << 20, kMostOfPlan = 64 << 20, kMostOfSpec = 4 << 20,
                      kMostOfSamples = 1 << 30;
// Records of a study are alike and shrink to a hundredth at most; a bomb to a thousandth.
constexpr std::size_t kMostRatio = 500, kFreeOfRatio = 64 << 20;
constexpr char kMistrust[] = "do not trust it: get it again from who made it";

// The name's place in a study, as "2.1" of "gpus=1/2.1.json"; empty: it has none.
std::string file_stem(const std::string& name, std::string_view ending) {
  const auto slash = name.find('/');
  if (slash == std::string::npos || !name.ends_with(ending)) return "";
  const bool plain = std::all_of(name.begin(), name.begin() + static_cast<long>(slash), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("=,._+%-").find(c) != std::string_view::npos;
  });
  if (!plain || slash == 0 || name.front() == '.' || slash > 255) return "";
  const std::string stem = name.substr(slash + 1, name.size() - ending.size() - slash - 1);
  const auto parts = split(stem, '.');
  if (parts.size() != 2) return "";
  for (const std::string& part : parts) {
    const auto number = to_integer(part);
    if (!number || *number < 1 || *number > 1000000 || part != std::to_string(*number)) return "";
  }
  return stem;
}

// Whether a folder of this name stays where an archive is unpacked.
bool is_folder_name(const std::string& name) {
  constexpr std::size_t kMostBytes = 255;
  return !name.empty() && name.size() <= kMostBytes && name.front() != '.' &&
         std::none_of(name.begin(), name.end(),
                      [](unsigned char c) { return c < ' ' || c == 127 || c == '/' || c == '\\'; });
}

bool is_record(const std::string& name) {
  return !file_stem(name, ".json").empty();
}

// The largest that a file of this name may be; 0: it has no place in a study.
std::size_t size_limit(const std::string& name) {
  if (name == kWantedFile) return kMostOfPlan;
  if (name == kSpecFile) return kMostOfSpec;
  if (is_record(name)) return kRecordLimitBytes;
  return file_stem(name, kSamplesEnding).empty() ? 0 : kMostOfSamples;
}

void add_file(Json& files, const std::string& name, std::string_view content) {
  files.push_back({{"name", name}, {"bytes", content.size()}, {"xxh3", hash_hex(content)}});
}

// The sidecar of a record, if it is there and is the one that the record names.
std::string find_samples(const Record& record, const fs::path& file,
                         std::vector<std::string>& notes) {
  if (!record->samples) return "";
  try {
    std::string samples = read_text(file, kMostOfSamples);
    if (hash_hex(samples) == record->samples->xxh3) return samples;
    notes.push_back(file.string() + ": the step samples differ from their hash in the record");
  } catch (const Error& error) {
    notes.emplace_back(error.what());
  }
  return "";
}

// Calls `take` with the name and content of each file of a study, in the archive's order.
template <typename Take>
void each_file(const fs::path& study, const std::vector<Record>& records,
               std::vector<std::string>& notes, const Take& take) {
  for (const char* name : {kWantedFile, kSpecFile}) {
    std::error_code none;
    if (fs::is_regular_file(study / name, none)) take(name, read_text(study / name));
  }
  for (const Record& record : records) {
    const fs::path file = record.where(), sidecar = samples_file(file);
    const std::string folder = file.parent_path().filename().string() + "/";
    const std::string samples = find_samples(record, sidecar, notes);
    if (!samples.empty()) take(folder + sidecar.filename().string(), samples);
    take(folder + file.filename().string(), read_text(file, kRecordLimitBytes));
  }
}

Manifest parse_manifest(const std::string& where, const std::string& text) {
  const auto refuse = [&](const std::string& what, const char* fix = kMistrust) {
    throw Error(ErrorKind::input, what, where, fix);
  };
  const JsonDocument document(where, text);
  Manifest manifest;
  try {
    const Json& json = document.value();
    if (json.at("schema") != kArchiveSchema) {
      refuse("the archive is of another version of paceline", "merge it with a newer one");
    }
    manifest.study = json.at("study").get<std::string>();
    if (!is_folder_name(manifest.study)) refuse("the study's name cannot be a folder's");
    std::set<std::string> seen;
    for (const Json& file : json.at("files")) {
      const auto name = file.at("name").get<std::string>();
      if (!file.at("bytes").is_number_integer()) {
        refuse("the size of " + name + " is not a whole number of bytes");
      }
      const auto bytes = file.at("bytes").get<std::int64_t>();
      const std::size_t limit = size_limit(name);
      if (limit == 0) refuse("the file " + name + " has no place in a study");
      if (!seen.insert(name).second) refuse("the file " + name + " is listed twice");
      if (bytes < 0 || static_cast<std::size_t>(bytes) > limit) {
        refuse(fmt::format("the file {} is said to have {} bytes, over the limit of {}", name,
                           bytes, limit));
      }
      manifest.names.push_back(name);
      manifest.sizes.push_back(static_cast<std::size_t>(bytes));
      manifest.hashes.push_back(file.at("xxh3").get<std::string>());
    }
  } catch (const Json::exception&) {
    refuse("the manifest lacks something, or a value of it has the wrong type");
  }
  return manifest;
}

// Its points are those of a study, which reports lay out.
ExpectedRuns parse_plan(const std::string& where, const std::string& text) {
  ExpectedRuns plan = parse_wanted(where, text);
  try {
    for (const Point& point : plan.points) make_layout(point);
  } catch (const Error& error) {
    throw Error(ErrorKind::input, error.what(), where);
  }
  return plan;
}

// Reads an archive from its begin to its end.
class ArchiveWalk {
 public:
  explicit ArchiveWalk(const fs::path& file) : reader_(file) {
    const std::string name = reader_.next().value_or("");
    if (!name.ends_with(std::string("/") + kManifestFile)) {
      refuse("the archive does not begin with a manifest", "name one of paceline archive");
    }
    manifest = parse_manifest(reader_.where(), reader_.content(kMostOfManifest));
    if (name != manifest.study + "/" + kManifestFile) refuse("the manifest is of another study");
    if (manifest.bytes() > kFreeOfRatio &&
        manifest.bytes() / kMostRatio > static_cast<std::size_t>(fs::file_size(file))) {
      refuse("the archive would unpack to " + format_bytes(static_cast<double>(manifest.bytes())));
    }
  }

  void run(const std::function<void(const std::string& name, std::string content)>& take_other,
           const std::function<void(ArchivedRun)>& take_run) {
    std::string samples, owner;  // of the record that must come next
    for (std::size_t i = 0; i < manifest.names.size(); ++i) {
      const std::string& name = manifest.names[i];
      std::string content = next(i);
      if (!owner.empty() && name != owner) refuse("no record follows its step samples");
      if (const std::string stem = file_stem(name, kSamplesEnding); !stem.empty()) {
        samples = std::move(content);
        owner = name.substr(0, name.find('/') + 1) + stem + ".json";
      } else if (is_record(name)) {
        take_run(make_run(name, std::move(content), std::exchange(samples, "")));
        owner.clear();
      } else {
        take_other(name, std::move(content));
      }
    }
    if (!owner.empty()) refuse("no record follows its step samples");
    if (reader_.next()) refuse("the entry is not in the manifest");
  }

  Manifest manifest;

 private:
  [[noreturn]] void refuse(const std::string& what, const char* fix = kMistrust) const {
    throw Error(ErrorKind::input, what, reader_.where(), fix);
  }

  std::string next(std::size_t i) {
    const std::string& name = manifest.names[i];
    const auto entry = reader_.next();
    if (!entry) refuse("the archive ends before " + name, "get it again");
    if (*entry != manifest.study + "/" + name) refuse("the manifest lists " + name + " here");
    std::string content = reader_.content(manifest.sizes[i]);
    if (content.size() != manifest.sizes[i] || hash_hex(content) != manifest.hashes[i]) {
      refuse("the content differs from its hash in the manifest", "get it again");
    }
    return content;
  }

  ArchivedRun make_run(const std::string& name, std::string text, std::string samples) const {
    const Record record(JsonDocument(reader_.where(), text).value(), reader_.where());
    const auto slash = name.find('/');
    if (name.substr(slash + 1) != fmt::format("{}.{}.json", record->repeat, record->attempt)) {
      refuse("the record is of another repeat or attempt than its name says");
    }
    if (record->study != manifest.study) refuse("the record is of study " + record->study);
    if (!samples.empty() && (!record->samples || record->samples->xxh3 != hash_hex(samples))) {
      refuse("the record does not name its step samples, or with another hash");
    }
    return {record, name.substr(0, slash), std::move(text), std::move(samples)};
  }

  TarReader reader_;
};

}  // namespace

std::size_t Manifest::bytes() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

ArchivedStudy write_archive(const fs::path& folder, const fs::path& file,
                            const std::string& version) {
  TarWriter writer(file);
  const fs::path study = study_path(folder);
  const StoreContent store = load_study(study);
  ArchivedStudy result;
  for (const Rejected& rejected : store.rejected) result.notes.push_back(rejected.reason);
  result.summary = summarize(read_wanted(study), store.records, study.string());
  if (!is_folder_name(result.summary.study)) {
    throw Error(ErrorKind::input,
                "the records name study \"" + result.summary.study +
                    "\", which an archive cannot have as its folder",
                study.string(), "remove the records that do; a study's name has no slash");
  }
  Json manifest = {{"schema", kArchiveSchema}, {"version", version}};
  manifest.update(to_json(result.summary));
  Json files = Json::array();
  each_file(study, store.records, result.notes,
            [&](const std::string& name, const std::string& content) {
              if (size_limit(name) == 0) {
                throw Error(ErrorKind::input, "a file of this name has no place in an archive",
                            (study / name).string(), "rename its folder, or move it away");
              }
              add_file(files, name, content);
            });
  result.files = files.size();
  manifest["files"] = files;
  result.manifest = json_text(manifest, 1) + "\n";
  if (result.manifest.size() > kMostOfManifest) {
    throw Error(ErrorKind::input,
                fmt::format("the study has {} files, too many for one archive", result.files),
                study.string(), "split it");
  }
  const std::string prefix = result.summary.study + "/";
  writer.add(prefix + kManifestFile, result.manifest);
  Json written = Json::array();
  std::vector<std::string> reported_before;
  each_file(study, store.records, reported_before,
            [&](const std::string& name, const std::string& content) {
              add_file(written, name, content);
              writer.add(prefix + name, content);
            });
  if (written != files) {
    throw Error(ErrorKind::input, "the study changed while it was archived", study.string(),
                "repeat the command");
  }
  writer.finish();
  return result;
}

StudyArchive::StudyArchive(fs::path file) : file_(std::move(file)) {
  ArchiveWalk walk(file_);
  walk.run(
      [&](const std::string& name, std::string content) {
        if (name == kSpecFile) {
          spec_ = std::move(content);
        } else {
          plan_ = parse_plan(file_.string() + ", entry " + name, content);
        }
      },
      [](const ArchivedRun&) {});
  manifest_ = std::move(walk.manifest);
  if (plan_ && plan_->study != manifest_.study) {
    throw Error(ErrorKind::input,
                "the plan is of study " + plan_->study + ", not " + manifest_.study,
                file_.string() + ", entry " + kWantedFile, kMistrust);
  }
}

void StudyArchive::each_run(const std::function<void(ArchivedRun)>& take) const {
  ArchiveWalk(file_).run([](const std::string&, const std::string&) {}, take);
}

}  // namespace paceline
