// A study in one file and back; and files that only look like one.
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "engine/core/hash.h"
#include "engine/facts/timing.h"
#include "results/archive/study_archive.h"
#include "results/run_record.h"
#include "tests/support/expect_error.h"
#include "tests/unit/results/sample_record.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

constexpr char kVersion[] = "1.2.3";

// A file for libarchive to write; `bytes` says more than there is where it is not 0.
struct TarFile {
  std::string name, content;
  unsigned type = AE_IFREG;
};

void write_tar(const fs::path& file, const std::vector<TarFile>& entries) {
  archive* writer = archive_write_new();
  archive_write_set_format_pax_restricted(writer);
  archive_write_add_filter_gzip(writer);
  archive_write_open_filename(writer, file.c_str());
  for (const TarFile& made : entries) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, made.name.c_str());
    archive_entry_set_filetype(entry, made.type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(made.content.size()));
    if (made.type == AE_IFLNK) archive_entry_set_symlink(entry, "/etc/passwd");
    archive_write_header(writer, entry);
    archive_write_data(writer, made.content.data(), made.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
}

class Archive : public ::testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_ / name; }

  // On a machine of another site where `cpu` says so.
  static Json make_record(int gpus, int repeat, double seconds, const std::string& cpu = "A CPU") {
    Json json = sample_record({.gpus = gpus, .repeat = repeat, .fit_seconds = seconds});
    json["provenance"]["cpu_model"] = cpu;
    json["session"] = cpu;
    return json;
  }

  static ExpectedRuns make_plan(const std::vector<std::int64_t>& sizes, int repeats) {
    ExpectedRuns plan{"quick", "mnist-cnn", repeats, {}};
    for (const std::int64_t gpus : sizes) {
      plan.points.emplace_back();
      plan.points.back().set("gpus", gpus);
      plan.points.back().set("backend", std::string("mpi"));
    }
    return plan;
  }

  // Two sizes, two repeats each, of which one run of two GPUs is missing, and one failed.
  fs::path study(const std::string& name = "quick") const {
    const Store store(at(name));
    for (const auto& [gpus, repeat] : {std::pair(1, 1), {1, 2}, {2, 1}}) {
      store.write("gpus=" + std::to_string(gpus), repeat, make_record(gpus, repeat, 10.0 / gpus),
                  "samples of " + std::to_string(gpus) + "." + std::to_string(repeat));
    }
    Json failed = make_record(2, 2, 1);
    failed["status"] = "failed";
    failed["reason"] = "a rank was killed";
    store.write("gpus=2", 2, failed, "");
    write_expected_runs(at(name), make_plan({1, 2}, 2));
    std::ofstream(at(name) / "spec.json") << "{}\n";
    return at(name);
  }

  // The archive of that study, as entries to bend.
  std::vector<TarFile> entries() const {
    std::vector<TarFile> made = {{"quick/manifest.json", ""}};
    for (const auto& [name, content] : list_files(study("good")))
      made.push_back({"quick/" + name, content});
    // A sidecar stands before its record.
    for (std::size_t i = 1; i + 1 < made.size(); ++i) {
      if (made[i + 1].name.ends_with(".steps.gz")) std::swap(made[i], made[i + 1]);
    }
    list(made);
    return made;
  }

  // Makes the manifest anew.
  static void list(std::vector<TarFile>& made) {
    Json manifest = {{"schema", 1}, {"study", "quick"}, {"files", Json::array()}};
    for (std::size_t i = 1; i < made.size(); ++i) {
      manifest["files"].push_back(
          {{"name", made[i].name.substr(made[i].name.starts_with("quick/") ? 6 : 0)},
           {"bytes", made[i].content.size()},
           {"xxh3", hash_hex(made[i].content)}});
    }
    made[0].content = manifest.dump();
  }

  static std::size_t entry_index(const std::vector<TarFile>& made, const std::string& name) {
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i].name == "quick/" + name) return i;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  // No merge takes it, whatever the reason, and the folder stays as it was.
  void expect_refused(const std::vector<TarFile>& made,
                      const std::vector<std::string>& parts) const {
    write_tar(at("bad.tar.gz"), made);
    expect_file_refused(parts);
  }
  void expect_file_refused(std::vector<std::string> parts) const {
    parts.push_back(at("bad.tar.gz").string());
    const Files before = list_files(folder_.path());
    expect_error(ErrorKind::input, parts, [&] { merge({"bad.tar.gz"}, "target"); });
    EXPECT_EQ(list_files(folder_.path()), before);
    EXPECT_FALSE(fs::exists(at("target")));
  }

  MergedStudy merge(const std::vector<std::string>& names, const std::string& target,
                    bool dry_run = false) const {
    std::vector<StudyArchive> archives;
    for (const std::string& name : names) archives.push_back(read_archive(at(name)));
    check_study(archives, archives.front().study);
    return merge_archives(archives, at(target), dry_run);
  }

  // By path.
  static Files list_files(const fs::path& folder) {
    Files files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      files[fs::relative(entry.path(), folder).string()] = {std::istreambuf_iterator<char>(stream),
                                                            {}};
    }
    return files;
  }

  Scratch folder_;
};

TEST_F(Archive, IsTheStudyAndNothingElse) {
  const fs::path source = study();
  const Files files = list_files(source);
  for (const char* other : {".lock", "logs/gpus=1.1.1.log", "report/report.md",
                            "slurm/journal.jsonl", "gpus=1/core.123", "gpus=1/1.1.json.77.0.tmp"}) {
    fs::create_directories((source / other).parent_path());
    std::ofstream(source / other) << "not in an archive";
  }
  const ArchivedStudy archived = write_archive(source / "", at("a.tar.zst"), kVersion);
  EXPECT_EQ(archived.files, files.size());
  EXPECT_TRUE(archived.notes.empty());
  EXPECT_EQ(archived.summary.records, 4U);
  EXPECT_EQ(archived.summary.completed, 3U);
  EXPECT_EQ(archived.summary.planned, 4U);
  ASSERT_EQ(archived.summary.missing.size(), 1U);
  EXPECT_EQ(archived.summary.missing[0].point, "gpus=2");
  EXPECT_EQ(archived.summary.missing[0].repeats, std::vector<int>{2}) << "it failed";
  const Json manifest = Json::parse(archived.manifest);
  EXPECT_EQ(manifest["version"], kVersion);
  EXPECT_EQ(manifest["missing"][0]["point"], "gpus=2");

  const MergedStudy merged = merge({"a.tar.zst"}, "new");
  EXPECT_EQ(list_files(at("new")), files) << "byte for byte";
  EXPECT_EQ(merged.archives[0].runs, 4U);
  EXPECT_EQ(merged.archives[0].known, 0U);
  EXPECT_EQ(to_json(merged.summary), to_json(archived.summary));
  expect_parts(to_text(merged.summary), {"4 runs planned, 1 missing:\n  gpus=2 repeat 2\n"
                                         "3 completed runs of A CPU\n"});
}

TEST_F(Archive, OfTheSameStudyHasTheSameBytes) {
  study();
  fs::create_directory(at("elsewhere"));
  fs::copy(at("quick"), at("elsewhere/copy"), fs::copy_options::recursive);
  fs::last_write_time(at("elsewhere/copy/plan.json"),
                      fs::file_time_type::clock::now() + std::chrono::hours(9));
  for (const std::string ending : {".tar.zst", ".tar.gz", ".tar.xz"}) {
    write_archive(at("quick"), at("a" + ending), kVersion);
    write_archive(at("elsewhere/copy"), at("b" + ending), kVersion);
    EXPECT_EQ(hash_of_file(at("a" + ending)), hash_of_file(at("b" + ending))) << ending;
    EXPECT_EQ(merge({"b" + ending}, "new" + ending).archives[0].runs, 4U);
  }
}

TEST_F(Archive, IsNeverHalfWrittenAndReplacesNothing) {
  const fs::path source = study();
  expect_error(ErrorKind::usage, {"a.zip", ".tar.zst, .tar.gz or .tar.xz"},
               [&] { write_archive(source, at("a.zip"), kVersion); });
  std::ofstream(at("a.tar.gz")) << "mine";
  expect_error(ErrorKind::input, {"a.tar.gz", "exists already", "give another name"},
               [&] { write_archive(source, at("a.tar.gz"), kVersion); });
  expect_error(ErrorKind::input, {"no such study"},
               [&] { write_archive(at("none"), at("b.tar.gz"), kVersion); });
  fs::create_directory(at("empty"));
  expect_error(ErrorKind::input, {"empty", "holds no study"},
               [&] { write_archive(at("empty"), at("b.tar.gz"), kVersion); });
  expect_error(ErrorKind::input, {"not that of one study", "quick/gpus=1/1.1.json"},
               [&] { write_archive(folder_.path(), at("b.tar.gz"), kVersion); });
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("b.tar")) << entry.path();
  }
  EXPECT_EQ(list_files(folder_.path())["a.tar.gz"], "mine");
}

TEST_F(Archive, LeavesOutWhatIsDamagedAndReportsIt) {
  const fs::path source = study();
  std::ofstream(source / "gpus=1/1.1.steps.gz") << "something else";
  fs::remove(source / "gpus=1/1.2.steps.gz");
  fs::resize_file(source / "gpus=2/1.1.json", 100);
  const ArchivedStudy archived = write_archive(source, at("a.tar.zst"), kVersion);
  ASSERT_EQ(archived.notes.size(), 2U);
  expect_parts(archived.notes[0], {"gpus=2/1.1.json"});
  expect_parts(archived.notes[1], {"gpus=1/1.1.steps.gz: the step samples differ"});
  merge({"a.tar.zst"}, "new");
  EXPECT_EQ(load_store(at("new")).records.size(), 3U);
  EXPECT_FALSE(fs::exists(at("new/gpus=1/1.1.steps.gz")));
}

TEST_F(Archive, OfHostileNamesIsRefused) {
  const std::vector<TarFile> good = entries();
  write_tar(at("good.tar.gz"), good);
  EXPECT_EQ(merge({"good.tar.gz"}, "taken").archives[0].runs, 4U) << "else this test tests nothing";
  const TarFile record = good.back();
  for (const std::string name :
       {"../1.1.json", "/tmp/1.1.json", "a/../../1.1.json", "../../etc/1.1.json", ".ssh/1.1.json",
        "gpus=1/../1.1.json", "gpus=1/1.1.sh", "gpus=1/x", "gpus=1/01.1.json", "gpus=1/1.1.json/x",
        "gpus=1/4294967297.1.json", "1.1.json", ".lock", "logs/a.log", "slurm/journal.jsonl",
        "gpus=1/1.1.json ", "a b/1.1.json"}) {
    auto made = good;
    made.push_back({"quick/" + name, record.content});
    const std::size_t listed = made.size() - 1;
    expect_refused(made, {"the entry is not in the manifest"});
    list(made);
    expect_refused(made, {"the file " + name + " has no place in a study"});
    made[listed].name = name;  // not below the study's own folder
    expect_refused(made, {"has no place"});
  }
  auto made = good;
  made[entry_index(made, "plan.json")].name = "../plan.json";
  expect_refused(made, {"entry ../plan.json", "the manifest lists plan.json here"});
  made = good;
  made[entry_index(made, "gpus=2/2.1.json")].name = "other/gpus=2/2.1.json";
  expect_refused(made, {"entry other/gpus=2/2.1.json", "the manifest lists"});
}

TEST_F(Archive, OfLinksAndFoldersIsRefused) {
  for (const unsigned type : {unsigned{AE_IFLNK}, unsigned{AE_IFDIR}, unsigned{AE_IFIFO}}) {
    auto made = entries();
    TarFile& entry = made[entry_index(made, "gpus=1/1.1.json")];
    entry.type = type;
    entry.content.clear();
    expect_refused(made, {"entry quick/gpus=1/1.1.json", "holds a link, a folder or a device"});
    fs::remove_all(at("good"));
  }
}

TEST_F(Archive, ThatIsDamagedIsRefusedBeforeAnythingIsWritten) {
  const std::vector<TarFile> good = entries();
  auto made = good;
  std::string& record = made[entry_index(made, "gpus=2/2.1.json")].content;
  record[record.find("killed")] = 'K';
  expect_refused(made, {"entry quick/gpus=2/2.1.json", "differs from its hash", "get it again"});
  made = good;
  made.pop_back();
  expect_refused(made, {"the manifest lists spec.json here", "get it again"});
  made = good;
  made[1].content += "x";
  expect_refused(made, {"larger than"});
  made = good;
  made.erase(made.begin());
  expect_refused(made, {"does not begin with a manifest"});
  made = good;
  made[0].content = "[]";
  expect_refused(made, {"the manifest lacks something"});
  made[0].content = R"({"schema": 2, "study": "quick", "files": []})";
  expect_refused(made, {"another version"});
  made = good;
  made.push_back(made.back());
  list(made);
  expect_refused(made, {"spec.json is listed twice"});
  write_tar(at("bad.tar.gz"), good);
  const auto size = fs::file_size(at("bad.tar.gz"));
  for (const std::uintmax_t cut : {std::uintmax_t{0}, std::uintmax_t{10}, size / 2, size - 20}) {
    fs::resize_file(at("bad.tar.gz"), cut);
    expect_file_refused({});
    write_tar(at("bad.tar.gz"), good);
  }
  std::ofstream(at("bad.tar.gz")) << "no archive at all\n";
  expect_file_refused({"cannot be read"});
  fs::remove(at("bad.tar.gz"));
  expect_error(ErrorKind::input, {"bad.tar.gz", "no such file"},
               [&] { merge({"bad.tar.gz"}, "target"); });
}

TEST_F(Archive, WhoseRecordsLieIsRefused) {
  const std::vector<TarFile> good = entries();
  const auto bent = [&](const std::string& name, const std::string& from, const std::string& to) {
    auto made = good;
    std::string& text = made[entry_index(made, name)].content;
    const auto place = text.find(from);
    EXPECT_NE(place, std::string::npos) << text;
    if (place != std::string::npos) text.replace(place, from.size(), to);
    list(made);
    return made;
  };
  expect_refused(bent("gpus=1/1.1.json", "\"quick\"", "\"other\""),
                 {"the record is of study other"});
  expect_refused(bent("gpus=1/1.1.json", "\"attempt\": 1", "\"attempt\": 2"),
                 {"another repeat or attempt"});
  expect_refused(bent("gpus=1/1.1.json", "\"schema\": 3", "\"schema\": 9"),
                 {"entry quick/gpus=1/1.1.json"});
  expect_refused(bent("gpus=1/1.1.steps.gz", "samples", "SAMPLES"),
                 {"step samples", "another hash"});
  for (const auto& [from, to, part] :
       {std::tuple("\"points\"", "\"paints\"", "\"points\" is missing"),
        {",\"backend\":\"mpi\"}\n", "}\n", "2 replicas need a backend"},
        {"\"gpus\":2", "\"gpus\":0", "gpus cannot be \"0\""},
        {"\"gpus\":2", "\"gpus\":\"2\"", "a whole number"},
        {"\"gpus\":2", "\"gpus\":2,\"zzz\":1", "unknown axis \"zzz\""},
        {"mnist-cnn", "command", "of workload \"command\", and no record is"}}) {
    expect_refused(bent("plan.json", from, to), {"entry quick/plan.json", part});
  }
  for (const char* repeats : {"2000000000", "-5", "0", "1e30", "2.5", "\"2\""}) {
    expect_refused(bent("plan.json", "\"repeats\": 2", std::string("\"repeats\": ") + repeats),
                   {"entry quick/plan.json", "whole number from 1 to 1000"});
  }
  expect_refused(bent("plan.json", "\"study\": \"quick\"", "\"study\": \"slow\""),
                 {"entry quick/plan.json", "the plan is of study slow, not quick"});
  auto made = good;
  made.erase(made.begin() + static_cast<long>(entry_index(made, "gpus=1/1.1.json")));
  list(made);
  expect_refused(made, {"no record follows its step samples"});
}

TEST_F(Archive, OfAnotherWorkloadIsNotMergedIntoAPlan) {
  write_archive(study(), at("a.tar.gz"), kVersion);
  ExpectedRuns plan = make_plan({1}, 1);
  plan.workload = "mnist-mlp";
  write_expected_runs(at("there"), plan);
  expect_error(ErrorKind::input, {"the plan is of workload mnist-cnn, not mnist-mlp"},
               [&] { merge({"a.tar.gz"}, "there"); });
  EXPECT_TRUE(load_store(at("there")).records.empty());
  for (const char* workload : {"mnist-cnn", "mnist-mlp"}) {  // its first runs are yet to come
    plan.workload = workload;
    write_expected_runs(at("there"), plan);
    write_archive(at("there"), at(std::string(workload) + ".tar.gz"), kVersion);
  }
  plan.workload = "nope";
  for (const std::string study : {"there", "quick"}) {
    write_expected_runs(at(study), plan);
    expect_error(ErrorKind::input, {study + "/plan.json", "of workload \"nope\""},
                 [&] { write_archive(at(study), at("nope.tar.gz"), kVersion); });
    EXPECT_FALSE(fs::exists(at("nope.tar.gz")));
  }
}

// An archive unpacks below its own folder, whoever unpacks it.
TEST_F(Archive, IsNotWrittenUnderNamesThatClimb) {
  for (const std::string name : {"../../evil", "/etc", "..", ".ssh", "a\\b"}) {
    Json record = make_record(1, 1, 10);
    record["study"] = name;
    fs::remove_all(at("evil"));
    Store(at("evil")).write("gpus=1", 1, record, "");
    expect_error(ErrorKind::input, {"the records name study", "cannot have as its folder"},
                 [&] { write_archive(at("evil"), at("evil.tar.gz"), kVersion); });
    EXPECT_FALSE(fs::exists(at("evil.tar.gz")));
  }
  fs::rename(study("odd") / "gpus=2", at("odd") / "gpus=2 x");
  expect_error(ErrorKind::input, {"has no place in an archive", "gpus=2 x"},
               [&] { write_archive(at("odd"), at("odd.tar.gz"), kVersion); });
}

// Neither memory nor disk: it is refused by what it says it holds, or where it holds more than
// that.
TEST_F(Archive, ThatUnpacksToFarTooMuchIsRefused) {
  const std::vector<TarFile> good = entries();
  auto made = good;
  const std::string zeros(100 << 20, '\0');
  made[entry_index(made, "gpus=1/1.1.steps.gz")].content = zeros;
  expect_refused(made, {"entry quick/gpus=1/1.1.steps.gz", "larger than 14 bytes"});
  list(made);
  expect_refused(made, {"would unpack to 105 MB"});
  made = good;
  made[entry_index(made, "gpus=1/1.1.json")].content = std::string(kRecordLimitBytes + 1, ' ');
  list(made);
  expect_refused(made, {"gpus=1/1.1.json is said to have 32769 bytes, over the limit of 32768"});
  made[0].content = zeros;
  expect_refused(made, {"entry quick/manifest.json", "larger than"});
  const auto place = good[0].content.find("\"bytes\":14");
  ASSERT_NE(place, std::string::npos) << good[0].content;
  for (const std::string bytes : {"-1", "1e30", "1.5", "99999999999999999", "\"14\""}) {
    made = good;
    made[0].content.replace(place, 10, "\"bytes\":" + bytes);
    expect_refused(made, {});
  }
}

TEST_F(Archive, OfAnotherSiteAddsRunsAndChangesNone) {
  study();
  const Store there(at("there"));
  there.write("gpus=1", 1, make_record(1, 1, 5, "B CPU"), "of B");         // its number is taken
  there.write("gpus=2", 2, make_record(2, 2, 2.5, "B CPU"), "more of B");  // by a failure
  there.write("gpus=4", 1, make_record(4, 1, 1.5, "B CPU"), "");
  for (const char* file : {"gpus=1/1.1.json", "gpus=1/1.1.steps.gz"})
    EXPECT_TRUE(fs::exists(at("there") / file));
  for (const char* file : {"gpus=1/2.1.json", "gpus=1/2.1.steps.gz"})
    fs::copy(at("quick") / file, at("there") / file);
  write_expected_runs(at("there"), make_plan({1, 4}, 3));
  write_archive(at("there"), at("b.tar.zst"), kVersion);
  const Files before = list_files(at("quick"));

  const MergedStudy said = merge({"b.tar.zst"}, "quick", true);
  EXPECT_EQ(list_files(at("quick")), before) << "a dry run";
  const MergedStudy merged = merge({"b.tar.zst"}, "quick");
  EXPECT_EQ(to_json(said.summary), to_json(merged.summary));
  for (const MergedStudy* each : {&said, &merged}) {
    EXPECT_EQ(each->archives[0].runs, 4U);
    EXPECT_EQ(each->archives[0].known, 1U) << "one run was in both";
    EXPECT_EQ(each->archives[0].renumbered, 2U);
  }
  const Files after = list_files(at("quick"));
  for (const auto& [name, content] : before) {
    EXPECT_EQ(after.at(name) == content, name != "plan.json") << name;
  }
  EXPECT_EQ(after.size(), before.size() + 5);
  const Record moved = read_record(at("quick/gpus=1/1.2.json"));
  EXPECT_EQ(moved->attempt, 2);
  EXPECT_EQ(moved->provenance.cpu_model, "B CPU");
  EXPECT_EQ(moved->timing->fit_seconds, 5);
  EXPECT_EQ(moved->samples->file, "1.2.steps.gz");
  EXPECT_EQ(moved->samples->xxh3, hash_hex("of B"));
  EXPECT_EQ(after.at("gpus=1/1.2.steps.gz"), "of B");
  EXPECT_TRUE(load_store(at("quick")).rejected.empty());

  EXPECT_EQ(merged.summary.machines,
            (std::vector<std::pair<std::string, std::size_t>>{{"A CPU", 3}, {"B CPU", 3}}));
  EXPECT_EQ(merged.summary.planned, 9U) << "sizes 1, 2, 4 of any site, three repeats";
  std::vector<std::string> missing;
  for (const MissingRuns& lacks : merged.summary.missing) {
    missing.push_back(lacks.point + ": " + std::to_string(lacks.repeats.front()));
  }
  EXPECT_EQ(missing, (std::vector<std::string>{"gpus=1: 3", "gpus=2: 3", "gpus=4: 2"}));

  EXPECT_EQ(merge({"b.tar.zst"}, "quick").archives[0].known, 4U) << "repeated";
  EXPECT_EQ(list_files(at("quick")), after);
}

// Their records name samples that are gone, and none where they became another attempt.
TEST_F(Archive, RunsAreKnownWithoutTheirStepSamples) {
  write_archive(study(), at("whole.tar.gz"), kVersion);
  for (const char* file : {"gpus=1/1.1.steps.gz", "gpus=1/1.2.steps.gz", "gpus=2/1.1.steps.gz"}) {
    fs::remove(at("quick") / file);
  }
  write_archive(at("quick"), at("bare.tar.gz"), kVersion);
  Store(at("taken")).write("gpus=1", 1, make_record(1, 1, 5, "B CPU"), "");
  for (const std::string target : {"new", "quick", "taken"}) {
    merge({"bare.tar.gz"}, target);
    const Files after = list_files(at(target));
    for (const char* again : {"bare.tar.gz", "whole.tar.gz"}) {
      EXPECT_EQ(merge({again}, target).archives[0].known, 4U) << again << " into " << target;
    }
    EXPECT_EQ(list_files(at(target)), after);
  }
  EXPECT_TRUE(fs::exists(at("taken/gpus=1/1.2.json")));
}

TEST_F(Archive, AMergeThatWasKilledIsCompletedByTheNext) {
  study();
  write_archive(at("quick"), at("a.tar.zst"), kVersion);
  const Files all = list_files(at("quick"));
  fs::create_directories(at("new/gpus=1"));
  fs::copy(at("quick/gpus=1/1.1.steps.gz"), at("new/gpus=1"));  // its record was to follow
  EXPECT_EQ(merge({"a.tar.zst"}, "new").archives[0].renumbered, 0U);
  EXPECT_EQ(list_files(at("new")), all);
  fs::create_directories(at("other/gpus=1"));
  std::ofstream(at("other/gpus=1/1.1.steps.gz")) << "of another run";
  EXPECT_EQ(merge({"a.tar.zst"}, "other").archives[0].renumbered, 1U);
  EXPECT_EQ(read_record(at("other/gpus=1/1.2.json"))->attempt, 2);
  EXPECT_EQ(merge({"a.tar.zst"}, "other").archives[0].known, 4U);
}

TEST_F(Archive, SeveralAtOnceAreOneStudy) {
  study();
  write_archive(at("quick"), at("a.tar.zst"), kVersion);
  Json other = make_record(1, 1, 7);
  other["study"] = "else";
  Store(at("else")).write("gpus=1", 1, other, "");
  write_archive(at("else"), at("else.tar.zst"), kVersion);
  expect_error(ErrorKind::input, {"else.tar.zst", "is of study else, not quick"}, [&] {
    merge({"a.tar.zst", "else.tar.zst"}, "new");
  });
  expect_error(ErrorKind::input, {"a.tar.zst", "is of study quick, not else"},
               [&] { merge({"a.tar.zst"}, "else"); });
  EXPECT_FALSE(fs::exists(at("new")));
  fs::create_directory(at("studies"));
  fs::rename(at("quick"), at("studies/quick"));
  expect_error(ErrorKind::input,
               {"studies", "not that of one study", "studies/quick/gpus=1/1.1.json"},
               [&] { merge({"a.tar.zst"}, "studies"); });
  EXPECT_EQ(merge({"a.tar.zst"}, "studies/quick/").archives[0].known, 4U);
  const MergedStudy merged = merge({"a.tar.zst", "a.tar.zst"}, "new");
  EXPECT_EQ(merged.archives[0].known, 0U);
  EXPECT_EQ(merged.archives[1].known, 4U);
  EXPECT_EQ(merge({"a.tar.zst", "a.tar.zst"}, "none", true).archives[1].known, 4U);
  EXPECT_FALSE(fs::exists(at("none")));
}

}  // namespace
}  // namespace paceline
