// Checkpoints as files: written whole or not at all, damage named, the newest whole one found.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <numeric>

#include "engine/train/checkpoint/folder.h"
#include "engine/train/checkpoint/format.h"
#include "engine/train/checkpoint/manifest.h"
#include "engine/train/weights.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

TEST(CheckpointSchedule, IsReadWithItsUnit) {
  const CheckpointSchedule steps = parse_checkpoint_schedule("17 steps", "");
  EXPECT_TRUE(steps.after_step(34));
  EXPECT_FALSE(steps.after_step(33));
  EXPECT_FALSE(steps.after_epoch(17));
  EXPECT_TRUE(parse_checkpoint_schedule("1epoch", "").after_epoch(3));
  EXPECT_TRUE(parse_checkpoint_schedule("0.5-minutes", "").after_seconds(30));
  EXPECT_FALSE(parse_checkpoint_schedule("0.5minutes", "").after_seconds(29));
  for (const char* text : {"", "17", "steps", "0steps", "1.5steps", "3 hours", "-1steps", "1e9e"}) {
    expect_error(ErrorKind::usage, {"checkpoint_every cannot be", "500steps"},
                 [&] { parse_checkpoint_schedule(text, "--checkpoint-every"); });
  }
}

// Turns each parameter round, so that a layout that is not converted shows.
class TurningProgram : public Program {
 public:
  void load(const Batch&) override {}
  void forward(Mode) override {}
  void repeat_forward(int, int) override {}
  void backward(int, int) override {}
  void accumulate(Accumulate, std::size_t, std::size_t) override {}
  void measure_gradients(const UpdateRule&) override {}
  void update(const UpdateRule&, std::size_t, std::size_t) override {}
  LossSums take_sums() override { return {}; }
  std::byte* gradients() override { return nullptr; }
  std::vector<double> read_parameter(int) const override { return {}; }
  std::vector<double> read_gradient(int) const override { return {}; }
  void write_parameter(int, std::span<const double>) override {}
  void write_gradient(int, std::span<const double>) override {}
  std::vector<double> read_statistic(int) const override { return {}; }
  void write_statistic(int, std::span<const double>) override {}
  ProgramState state(Optimizer) override { return {}; }
  std::vector<std::string> implementations() const override { return {}; }
  void to_canonical(int, std::span<const std::byte> own, std::byte* canonical) const override {
    turn(own, canonical);
  }
  void from_canonical(int, std::span<const std::byte> canonical, std::byte* own) const override {
    turn(canonical, own);
  }

 private:
  static void turn(std::span<const std::byte> from, std::byte* to) {
    const std::size_t count = from.size() / sizeof(float);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(to + (count - 1 - i) * sizeof(float), from.data() + i * sizeof(float),
                  sizeof(float));
    }
  }
};

class CheckpointFiles : public ::testing::Test {
 protected:
  CheckpointFiles() {
    plan_.network = "net";
    plan_.parameters = {{"dense/kernel", {2, 3}, 0, 6}, {"dense/bias", {3}, 16, 3}};
    plan_.arena_elements = 32;
    plan_.statistics = {{"bn/moving_mean", {2}, 0, 2}};
    plan_.statistics_elements = 16;
    for (Memory* arena : {&snapshot_.parameters, &snapshot_.first, &snapshot_.second}) {
      *arena = host_memory(plan_.arena_elements * sizeof(float));
      auto* values = reinterpret_cast<float*>(arena->data());
      std::iota(values, values + plan_.arena_elements, next_ += 100);
    }
    std::vector<float> statistics(2 * plan_.statistics_elements);
    statistics[0] = 1;
    statistics[16] = 3;
    snapshot_.statistics.resize(statistics.size() * sizeof(float));
    std::memcpy(snapshot_.statistics.data(), statistics.data(), snapshot_.statistics.size());
  }

  fs::path write(int epoch, std::size_t step, std::size_t in_epoch = 0) {
    CheckpointManifest manifest;
    manifest.workload = "w";
    manifest.network = plan_.network;
    manifest.progress.epoch = epoch;
    manifest.progress.step = step;
    manifest.progress.position_in_epoch = in_epoch;
    manifest.progress.sums = {1.5, 2, 3};
    manifest.progress.epochs.assign(static_cast<std::size_t>(epoch),
                                    {0.5, 0.25, 0.75, 0.125, 0.375, 0.625});
    manifest.ranks = 2;
    manifest.global_batch = 64;
    manifest.optimizer = "adam";
    manifest.real = "f32";
    manifest.run = {{"seed", "1"}};
    manifest.created_at = "2026-11-21T00:00:00Z";
    const fs::path folder = CheckpointFolder(run(), "w").checkpoint_path(manifest.progress);
    write_checkpoint(folder, snapshot_, program_, plan_, manifest, CheckpointContent::everything);
    return folder;
  }

  static void damage(const fs::path& file) {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(-1, std::ios::end);
    stream.put('!');
  }

  fs::path run() const { return scratch_ / "run"; }

  Scratch scratch_;
  Plan plan_;
  TurningProgram program_;
  Snapshot snapshot_;
  float next_ = 0;
};

TEST_F(CheckpointFiles, ComeBackAsTheyWere) {
  const fs::path folder = write(3, 417);
  EXPECT_EQ(folder.filename(), "w-0003");
  const CheckpointManifest manifest = read_manifest(folder);
  EXPECT_EQ(manifest.progress.step, 417U);
  EXPECT_EQ(manifest.progress.sums[0], 1.5);
  ASSERT_EQ(manifest.progress.epochs.size(), 3U);
  EXPECT_EQ(manifest.progress.epochs[2].test_accuracy, 0.125);
  EXPECT_EQ(manifest.progress.epochs[2].train_top5, 0.375);
  EXPECT_EQ(manifest.progress.epochs[2].test_top5, 0.625);
  EXPECT_EQ(manifest.run.at("seed"), "1");
  Snapshot back;
  read_checkpoint(folder, manifest, program_, plan_, 2, back);
  for (const auto& [was, is] : {std::pair{&snapshot_.parameters, &back.parameters},
                                {&snapshot_.first, &back.first},
                                {&snapshot_.second, &back.second}}) {
    for (const ParameterInfo& info : plan_.parameters) {
      EXPECT_EQ(
          std::memcmp(was->data() + info.offset * sizeof(float),
                      is->data() + info.offset * sizeof(float), info.elements * sizeof(float)),
          0);
    }
  }
  EXPECT_EQ(back.statistics, snapshot_.statistics);
}

TEST_F(CheckpointFiles, HoldTheWholeModelInCanonicalForm) {
  const auto tensors = read_safetensors(write(1, 2) / kParametersFile);
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_EQ(tensors[0].name, "dense/kernel");
  EXPECT_EQ(tensors[0].shape, (std::vector<int>{2, 3}));
  EXPECT_EQ(tensors[0].values, (std::vector<float>{105, 104, 103, 102, 101, 100}));  // turned
  EXPECT_EQ(tensors[2].name, "bn/moving_mean");
  EXPECT_EQ(tensors[2].values, (std::vector<float>{2, 0}));  // the mean of both ranks
}

TEST_F(CheckpointFiles, DamageIsNamed) {
  const fs::path folder = write(1, 2);
  const CheckpointManifest manifest = read_manifest(folder);
  for (const CheckpointFile& file : manifest.files) {
    const fs::path copy = scratch_ / "copy";
    fs::copy(folder, copy);
    damage(copy / file.name);
    expect_error(ErrorKind::input, {"altered", file.name},
                 [&] { verify_checkpoint(copy, manifest); });
    fs::resize_file(copy / file.name, file.bytes - 7);
    expect_error(ErrorKind::input, {"bytes of", file.name},
                 [&] { verify_checkpoint(copy, manifest); });
    fs::remove(copy / file.name);
    expect_error(ErrorKind::input, {"is missing", file.name},
                 [&] { verify_checkpoint(copy, manifest); });
    fs::remove_all(copy);
  }
  Plan other = plan_;
  other.parameters[1].shape = {4};
  Snapshot back;
  expect_error(ErrorKind::input, {"tensor dense/bias is [3]", "[4]"},
               [&] { read_checkpoint(folder, manifest, program_, other, 2, back); });
}

TEST_F(CheckpointFiles, BadManifestsAreNamed) {
  const fs::path folder = write(1, 2);
  const std::string text = file_text(folder / kManifestFile);
  const auto replaced = [&](const std::string& old, const std::string& now) {
    std::string copy = text;
    const auto at = copy.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return copy.replace(at, old.size(), now);
  };
  const auto expect = [&](const std::string& bytes, const std::string& part) {
    expect_error(ErrorKind::input, {part, "m.json"}, [&] { parse_manifest(bytes, "m.json"); });
  };
  expect(text.substr(0, text.size() / 2), "not JSON");
  expect("[]", "\"format\" is missing");
  expect(replaced("paceline checkpoint", "else"), "not a manifest of a checkpoint");
  expect(replaced("\"version\": 2", "\"version\": 3"), "of version 3, and this program knows 2");
  expect(replaced("\"step\": 2", "\"step\": -2"), "step must be a whole number from 0");
  expect(replaced("\"ranks\": 2", "\"ranks\": 0"), "is of no ranks");
  expect(replaced("\"sums\": [", "\"sums\": [1,"), "sums must be a list of 4");
  expect(replaced("parameters.safetensors", "../x"), "names a file outside its folder");
}

TEST_F(CheckpointFiles, TheNewestWholeOneIsFound) {
  std::vector<std::string> skipped;
  EXPECT_FALSE(find_latest(run(), skipped));
  write(0, 0);
  const fs::path second = write(0, 9, 90);
  EXPECT_EQ(second.filename(), "w-0000-step-00000009");
  const fs::path third = write(1, 12);
  EXPECT_EQ(find_latest(run(), skipped), third);
  damage(third / "optimizer.safetensors");
  EXPECT_EQ(find_latest(run(), skipped), second);
  ASSERT_EQ(skipped.size(), 1U);
  expect_parts(skipped[0], {"optimizer.safetensors"});
  for (const fs::path& given : {run(), run() / "checkpoints", second}) {
    EXPECT_EQ(find_resumed(given, run(), skipped), second) << given;
  }
  // Another job's, by its number.
  EXPECT_EQ(find_resumed("run", scratch_ / "4711", skipped), second);
  expect_error(ErrorKind::input, {"no checkpoint to resume", "4712"},
               [&] { find_resumed("4712", run(), skipped); });
}

TEST_F(CheckpointFiles, ANewerOneWithADamagedManifestIsNotPassedOverSilently) {
  write(0, 0);
  const fs::path good = write(0, 20, 90);
  const fs::path later = write(0, 40, 180), epoch = write(1, 60);
  for (const fs::path& damaged : {later, epoch}) std::ofstream(damaged / "manifest.json") << "{";
  std::ofstream(write(0, 5, 20) / "manifest.json") << "{";  // older: nobody asks for it
  std::vector<std::string> skipped;
  EXPECT_EQ(find_latest(run(), skipped), good);
  ASSERT_EQ(skipped.size(), 2U);
  expect_parts(skipped[0], {epoch.string()});
  expect_parts(skipped[1], {later.string()});
  fs::rename(later, run() / "checkpoints" / "mine");  // a name that tells nothing
  skipped.clear();
  EXPECT_EQ(find_latest(run(), skipped), good);
  EXPECT_EQ(skipped.size(), 2U);
}

TEST_F(CheckpointFiles, OnlyTheNewestAreKept) {
  const fs::path first = write(0, 0), second = write(1, 4), third = write(2, 8);
  CheckpointFolder(run(), "w").prune(0);
  EXPECT_TRUE(fs::exists(first));
  CheckpointFolder(run(), "w").prune(2);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(second) && fs::exists(third));
}

TEST_F(CheckpointFiles, OneRunAtATimeAndNothingUnfinishedStays) {
  const fs::path left = run() / "checkpoints" / ".w-0001.123.tmp";
  fs::create_directories(left);
  const CheckpointFolder mine(run(), "w");
  EXPECT_FALSE(fs::exists(left));
  expect_error(ErrorKind::input, {"another run writes", "checkpoints"},
               [&] { const CheckpointFolder other(run(), "w"); });
}

TEST_F(CheckpointFiles, WhatIsNotOursIsNeitherReplacedNorRemoved) {
  const fs::path theirs = run() / "checkpoints" / ".ssh";
  fs::create_directories(theirs);
  { const CheckpointFolder folder(run(), "w"); }
  EXPECT_TRUE(fs::exists(theirs));

  const fs::path other = run() / "other";
  fs::create_directories(other);
  fs::create_directory_symlink(run() / "checkpoints", other / "checkpoints");
  expect_error(ErrorKind::input, {"other", "link"},
               [&] { const CheckpointFolder folder(other, "w"); });

  const fs::path mine = write(1, 4);
  check_replaceable(mine);
  check_replaceable(run() / "none");
  std::ofstream(mine / "train.py") << "import torch";
  expect_error(ErrorKind::input, {"--run-dir", mine.filename().string()}, [&] { write(1, 4); });
  EXPECT_TRUE(fs::exists(mine / "train.py"));
}

TEST_F(CheckpointFiles, AFullFileSystemLeavesWhatWasThere) {
  const fs::path folder = write(1, 4);
  const auto before = read_manifest(folder).json();
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{200, limit.rlim_max};
  struct sigaction ignore {
  }, old{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, &old);
  setrlimit(RLIMIT_FSIZE, &small);
  expect_error(ErrorKind::input, {"cannot be written"}, [&] { write(1, 4); });
  setrlimit(RLIMIT_FSIZE, &limit);
  sigaction(SIGXFSZ, &old, nullptr);
  EXPECT_EQ(read_manifest(folder).json(), before);
  verify_checkpoint(folder, read_manifest(folder));
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(run() / "checkpoints"))
    ++entries;
  EXPECT_EQ(entries, 2U);  // it and the lock
}

TEST_F(CheckpointFiles, ManifestsAreShownInLines) {
  const CheckpointManifest manifest = read_manifest(write(3, 417, 64));
  const std::string text = manifest.text();
  EXPECT_TRUE(text.starts_with(
      "  w after 417 steps, 3 epochs and 64 samples; 2 ranks, global batch 64, adam, f32\n"
      "  training loss 0.5000, test accuracy 12.50 %\n"))
      << text;
  expect_parts(text, {"  parameters.safetensors "});
  EXPECT_TRUE(text.ends_with("  written 2026-11-21T00:00:00Z by build unknown\n")) << text;
  std::size_t bytes = 0;
  for (const CheckpointFile& file : manifest.files) bytes += file.bytes;
  EXPECT_EQ(manifest.bytes(), bytes);
}

TEST_F(CheckpointFiles, AreNamedByTheirFolderOrTheirRuns) {
  const fs::path first = write(1, 4), second = write(2, 8);
  EXPECT_EQ(named_checkpoints(first), std::vector{first});
  EXPECT_EQ(named_checkpoints(run()), (std::vector{first, second}));
  expect_error(ErrorKind::input, {"there is no checkpoint", "nowhere"},
               [&] { named_checkpoints(run() / "nowhere"); });
}

}  // namespace
}  // namespace paceline
