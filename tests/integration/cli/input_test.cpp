// Training and measuring on folders of images, as a user does: every option of the input acts, and
// what is wrong with a file is one line.
#include <nlohmann/json.hpp>

#include "results/names.h"
#include "tests/integration/cli/paceline.h"
#include "tests/unit/input/made.h"
#include "tests/unit/input/npz_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr int kImages = 20;  // a class
const std::string kDigits = "train mnist-mlp --data digits --batch-per-replica 16 ";
const std::string kOneCpu = kDigits + "--cpus-per-task 1 ";

class CliInput : public Cli {
 protected:
  CliInput() {
    for (int label = 0; label < 10; ++label) {
      for (int i = 0; i < kImages; ++i) {
        write_file(resolve_file(label, i), make_png(28, 28, 1, 10 * i + label));
      }
    }
  }
  fs::path resolve_file(int label, int i) const {
    return folder() / "digits" / std::to_string(label) / (std::to_string(100 + i) + ".png");
  }
  nlohmann::json read_record(const std::string& options) const {
    return read_record(kOneCpu, options);
  }
  nlohmann::json read_record(const std::string& run, const std::string& options) const {
    const Ran ran = paceline(run + "--epochs 3 --json " + options);
    EXPECT_EQ(ran.code, 0) << options << "\n" << ran.err;
    return ran.code == 0 ? nlohmann::json::parse(ran.out) : nlohmann::json();
  }
};

TEST_F(CliInput, CachesChangeNothingButTheWork) {
  const auto plain = read_record("--cache off");
  ASSERT_FALSE(plain.is_null());
  const auto& input = plain.at("input");
  EXPECT_EQ(input.at("cache"), "off");
  EXPECT_EQ(input.at("fetched"), 3 * 160);
  EXPECT_EQ(input.at("decoded"), 3 * 160);
  EXPECT_EQ(input.at("first_epoch").at("decoded"), 160);
  EXPECT_GT(input.at("decode_seconds"), 0);
  EXPECT_EQ(input.at("bad_samples"), 0);
  EXPECT_EQ(input.at("lost_records"), 0);
  const auto checksum = plain.at("quality").at("parameter_checksum");
  const auto decoded = read_record("--cache decoded --cache-mb 8");
  EXPECT_EQ(decoded.at("quality").at("parameter_checksum"), checksum);
  EXPECT_EQ(decoded.at("input").at("decoded"), 160);
  EXPECT_EQ(decoded.at("input").at("cache_budget_bytes"), 8 << 20);
  EXPECT_EQ(decoded.at("input").at("cached_bytes"), 200 * 784);  // with the test images
  const auto raw = read_record("--cache raw --read-buffer-kb 1");
  EXPECT_EQ(raw.at("quality").at("parameter_checksum"), checksum);
  EXPECT_EQ(raw.at("input").at("decoded"), 3 * 160);
  EXPECT_EQ(raw.at("input").at("from_cache"), 2 * 160);
  const auto exact = read_record("--cache-type fp32 --cache decoded");
  EXPECT_EQ(exact.at("quality").at("parameter_checksum"), checksum);  // no resize: whole numbers
  EXPECT_EQ(exact.at("input").at("pixels"), "fp32");
  EXPECT_EQ(exact.at("input").at("cached_bytes"), 4 * 200 * 784);
}

// The order sends other samples to a rank in every epoch: what one decoded, the others must find.
TEST_F(CliInput, RanksOfANodeDecodeEachImageOnce) {
  EXPECT_EQ(read_record("").at("input").at("cache_shared"), 1);
  for (const std::string backend : {"mirrored", "mpi", "gloo"}) {
    SCOPED_TRACE(backend);
    if (!find_name("backend", backend).built) continue;
    const std::string cpus = backend == "mirrored" ? "--cpus-per-task 2 " : "--cpus-per-task 1 ";
    const auto record =
        read_record(kDigits + cpus,
                    "--gpus 2 --oversubscribe --cache-mb 8 --evaluate epoch --backend " + backend);
    ASSERT_FALSE(record.is_null());
    const auto& input = record.at("input");
    EXPECT_EQ(input.at("cache_shared"), 2);
    EXPECT_EQ(input.at("cache_budget_bytes"), 8 << 20);
    EXPECT_EQ(input.at("first_epoch").at("decoded"), 160);
    EXPECT_EQ(input.at("decoded"), 160);  // none in the second and third epoch
    EXPECT_EQ(input.at("from_cache"), 2 * 160);
    EXPECT_EQ(input.at("evaluation").at("decoded"), 40);
    EXPECT_EQ(input.at("evaluation").at("from_cache"), 2 * 40);
    EXPECT_EQ(input.at("cached_bytes"), 200 * 784);  // one area, counted once
  }
}

TEST_F(CliInput, BadSamplesEndTheRunOrAreCounted) {
  write_file(resolve_file(3, 2), "version https://git-lfs.github.com/spec/v1\n");
  write_file(resolve_file(4, 5), make_png(28, 28, 1, 1).substr(0, 50));
  expect_refused(kOneCpu + "--epochs 1 --quiet", 65, {"image", ".png", "--on-bad-sample skip"});
  const auto record = read_record("--on-bad-sample skip");
  ASSERT_FALSE(record.is_null());
  EXPECT_EQ(record.at("input").at("bad_samples"), 2);
  expect_parts(record.at("input").at("bad_places").at(0), {"digits/3/102.png"});
}

TEST_F(CliInput, ADamagedHeaderEndsTheRunOrLosesTheRestOfItsShard) {
  std::vector<std::string> first, second;
  for (int i = 0; i < 24; ++i) {
    (i < 12 ? first : second).push_back(make_example(make_png(28, 28, 1, i), i % 3));
  }
  write_tfds(folder() / "pets", {first, second});
  write_file(folder() / "pets" / "label.labels.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  const std::string name = "pets-train.tfrecord-00000-of-00002";
  std::size_t fifth = 0;
  for (std::size_t i = 0; i < 4; ++i) fifth += make_record(first[i]).size();
  std::string bytes = file_text(folder() / "pets" / name);
  bytes[fifth + 9] ^= 1;
  write_file(folder() / "pets" / name, bytes);
  const std::string where = name + ", record 4 at byte " + std::to_string(fifth);
  const std::string run =
      "train mnist-mlp --data pets --cpus-per-task 1 --batch-per-replica 8 --epochs 2 ";
  expect_refused(run + "--quiet", 65, {"CRC of a record's length", where, "--on-bad-sample skip"});
  const Ran ran = succeed(run + "--on-bad-sample skip --json");
  const std::string loss = where + ": 8 records are lost";
  const auto warning = ran.err.find("warning: ");
  ASSERT_NE(warning, std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("warning: ", warning + 1), std::string::npos) << ran.err;
  expect_parts(ran.err.substr(warning, ran.err.find('\n', warning) - warning), {loss});
  const auto input = nlohmann::json::parse(ran.out).at("input");
  EXPECT_EQ(input.at("lost_records"), 8);
  expect_parts(input.at("lost_places").at(0), {loss});
  EXPECT_EQ(input.at("bad_samples"), 0);
  EXPECT_EQ(input.at("fetched"), 2 * 16);
  const Ran bench = succeed("bench input --data pets --size 28x28 --on-bad-sample skip --epochs 2");
  expect_parts(bench.out, {loss});
}

// A TFDS folder of `classes` classes, with an image of each in both splits.
void write_classes(const fs::path& folder, int classes, int side, int channels) {
  std::vector<std::string> examples;
  std::string names;
  for (int label = 0; label < classes; ++label) {
    examples.push_back(make_example(make_png(side, side, channels, label), label));
    names += "class " + std::to_string(label) + "\n";
  }
  write_tfds(folder, {examples});
  write_file(folder / "label.labels.txt", names);
}

TEST_F(CliInput, TheHeadHasAsManyOutputsAsTheDataSetHasClasses) {
  write_classes(folder() / "leaves", 7, 40, 3);
  write_classes(folder() / "things", 100, 40, 3);
  const std::string recipe =
      "train resnet50-cassava --weights none --batch-per-replica 2 --steps 1 --test-limit 2 --json "
      "--cpus-per-replica 1 --oversubscribe --data ";
  constexpr std::int64_t kFive = 25621461, kHead = 1016 + 1;
  const Ran seven = succeed(recipe + "leaves");
  expect_parts(seven.err, {"has 7 classes"});
  const auto record = nlohmann::json::parse(seven.out);
  EXPECT_EQ(record.at("plan").at("parameter_count"), kFive + 2 * kHead);
  EXPECT_GE(record.at("quality").at("test_accuracy"), 0);
  const Ran hundred = succeed(recipe + "things --gpus 2 --backend mirrored");
  EXPECT_EQ(nlohmann::json::parse(hundred.out).at("plan").at("parameter_count"),
            kFive + 95 * kHead);
}

TEST_F(CliInput, CheckpointsAndWeightsFollowTheClasses) {
  write_classes(folder() / "letters", 26, 28, 1);
  const std::string run =
      "train mnist-mlp --cpus-per-task 1 --batch-per-replica 8 --epochs 2 --json ";
  const Ran letters = succeed(run + "--data letters --checkpoint-every 1epoch --run-dir run");
  const auto whole = nlohmann::json::parse(letters.out);
  EXPECT_GE(whole.at("quality").at("test_accuracy"), 0);
  EXPECT_GE(whole.at("quality").at("epochs").at(0).at("train_top5"), 0);  // of more than 5 classes
  succeed("checkpoint verify run");
  fs::remove_all(folder() / "run" / "checkpoints" / "mnist-mlp-0002");
  const Ran resumed =
      succeed(run + "--data letters --checkpoint-every 1epoch --run-dir run --resume latest");
  EXPECT_EQ(nlohmann::json::parse(resumed.out).at("quality").at("parameter_checksum"),
            whole.at("quality").at("parameter_checksum"));
  const Ran digits = succeed(run + "--data digits --weights run/model");
  expect_parts(digits.err, {"layer dense_1 is initialised afresh"});
  expect_refused(
      "train mnist-mlp --quiet --data digits --run-dir run --resume latest "
      "--checkpoint-every 1epoch --cpus-per-task 1 --batch-per-replica 8",
      64, {"data_hash", "--weights"});
}

TEST_F(CliInput, ClassesThatDoNotFitAreRefused) {
  write_classes(folder() / "letters", 26, 28, 1);
  write_file(folder() / "letters" / "label.labels.txt", "a\nb\nc\n");
  expect_refused("train mnist-mlp --quiet --data letters --batch-per-replica 8 --cpus-per-task 1",
                 65, {"label", "is out of range", "3 classes", "record"});
  write_classes(folder() / "same", 1, 28, 1);
  expect_refused("train mnist-mlp --quiet --data same --cpus-per-task 1", 65,
                 {"the data set has 1 class", "at least two"});
  for (const char* file : {"train/a/1.png", "train/b/1.png", "test/a/1.png", "test/c/1.png"}) {
    write_file(folder() / "other" / file, make_png(28, 28, 1, 1));
  }
  expect_refused("train mnist-mlp --quiet --data other --cpus-per-task 1", 65,
                 {"a class that train/ does not have", "other/test/c"});
}

// ~/.keras/datasets holds other sets beside MNIST.
TEST_F(CliInput, TheArchiveThatKerasCachesIsMnist) {
  const std::string images = make_npy("(20, 28, 28)", std::string(20 * 784, 'x'));
  const std::string labels = make_npy("(20,)", std::string(20, '\3'));
  const std::string zip = make_zip({{"x_train.npy", images},
                                    {"y_train.npy", labels},
                                    {"x_test.npy", images},
                                    {"y_test.npy", labels}},
                                   true);
  write_file(folder() / "keras" / "mnist.npz", zip);
  write_file(folder() / "keras" / "cats" / "1.png", make_png(28, 28, 1, 1));
  const auto record =
      read_record("train mnist-mlp --cpus-per-task 1 --data keras --stage fast ", "");
  ASSERT_FALSE(record.is_null());
  EXPECT_EQ(record.at("throughput").at("samples"), 3 * 20);
  expect_parts(succeed("data verify keras").out, {"NumPy archive"});
  write_file(folder() / "keras" / "mnist.npz", zip.substr(0, zip.size() / 2));
  expect_refused("train mnist-mlp --quiet --cpus-per-task 1 --data keras", 65,
                 {"cut short", "keras/mnist.npz"});
}

TEST_F(CliInput, StagesOnceAndReportsHowLong) {
  const auto first = read_record("--stage fast");
  ASSERT_FALSE(first.is_null());
  EXPECT_GT(first.at("input").at("stage_seconds"), 0);
  EXPECT_EQ(first.at("input").at("staged_before"), false);
  const auto second = read_record("--stage fast");
  EXPECT_EQ(second.at("input").at("staged_before"), true);
  EXPECT_EQ(second.at("provenance").at("data_hash"), first.at("provenance").at("data_hash"));
  if (!find_name("backend", "mpi").built) return;
  succeed(kOneCpu + "--epochs 1 --gpus 2 --backend mpi --oversubscribe --stage both");
}

TEST_F(CliInput, ContradictionsAreRefused) {
  expect_refused(kOneCpu + "--parallel-reads 2", 64, {"2 parallel reads", "--input-threads"});
  expect_refused(kOneCpu + "--cache off --cache-mb 5", 64, {"cache_mb is given, but cache is off"});
  expect_refused(kOneCpu + "--cache off --cache-dir .", 64, {"cache is off", "--cache-dir"});
  expect_refused(kOneCpu + "--cache-mb 99999999", 64, {"lower --cache-mb"});
  expect_refused(kOneCpu + "--cache-dir no/such", 65, {"no/such", "--cache-dir"});
  expect_refused(kOneCpu + "--input synthetic --stage x", 64, {"synthetic input", "--stage"});
  expect_refused(kOneCpu + "--cache some", 64, {"cache cannot be \"some\"", "decoded"});
  expect_refused("train mnist-mlp --steps 3 --cpus-per-task 1 --cache raw", 64,
                 {"for encoded images", "cache"});
}

TEST_F(CliInput, BenchReportsStagesAndEpochs) {
  const std::string on_digits = "bench input --data digits --epochs 2 ";
  const std::string bench = on_digits + "--size 40x50 ";
  expect_parts(succeed(bench).out, {"class folders", "160 images", "read", "decode", "resize",
                                    "together", "queue level", "\n2  ", "100 %"});
  const Ran ran = succeed(bench + "--json --input-threads 1 --cache raw --samples 50");
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json.at("samples"), 50);
  EXPECT_GT(json.at("one_thread").at("decode").at("images_per_second"), 0);
  EXPECT_EQ(json.at("epochs").at(1).at("from_cache"), 50);
  EXPECT_EQ(json.at("epochs").at(1).at("decoded"), 50);
  EXPECT_EQ(json.at("augment"), "none");
  EXPECT_EQ(json.at("epochs").at(0).at("augmented"), 0);
  const Ran augmented = succeed(bench + "--json --augment crop3+vflip");
  const auto changed = nlohmann::json::parse(augmented.out);
  EXPECT_EQ(changed.at("augment"), "vflip+crop3");
  EXPECT_GT(changed.at("epochs").at(0).at("augmented"), 140);  // of 160: 157 are to be expected
  expect_refused(bench + "--augment crop40", 64, {"crop40", "40 x 50 black"});
  expect_refused("bench input --data digits --size 0x3", 64, {"\"0x3\" is not a size"});
  expect_refused(bench + "--split other", 65, {"no split \"other\"", "test, train"});
  expect_refused(bench + "--parallel-reads 3", 64, {"3 parallel reads"});
  expect_refused("bench input --data .", 65, {"holds no data set of images"});
}

}  // namespace
}  // namespace paceline
