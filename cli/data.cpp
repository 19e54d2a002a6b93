// paceline data make|fetch|verify
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verb.h"
#include "engine/core/clock.h"
#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/input/prepare/fetch.h"
#include "engine/input/prepare/make.h"
#include "engine/input/prepare/verify.h"
#include "engine/launch/topology.h"

namespace paceline {

namespace {

constexpr char kDataFooter[] = R"(Examples:
  paceline data make cassava --images 256 --out cassava-256
  paceline data fetch cifar10 --out data/cifar10 --dry-run
  paceline data fetch resnet50-imagenet --out data/resnet50-imagenet
  paceline data verify cassava-256

Training never downloads. Downloads resume where they stopped, are checked by the published
checksum, and go through $https_proxy. docs/data.md has sources, sizes and checksums.)";

constexpr char kMakeFooter[] = R"(Examples:
  paceline data make cassava --images 256 --out cassava-256
  paceline data make cassava --images 5656 --test 1885 --threads 8 --out cassava-like
  paceline data make cifar10 --images 50000 --test 10000 --out cifar10-like
  paceline data make text --tokens 1000000 --out text-like

The same seed makes the same bytes, whatever the threads. The set is marked as synthetic.)";

constexpr char kFetchFooter[] = R"(Examples:
  paceline data fetch cifar10 --out data/cifar10
  paceline data fetch cassava --out data/cassava --tfrecord
  paceline data fetch mnist --out data/mnist --mirror http://mirror.site/datasets
  https_proxy=http://proxy.site:3128 paceline data fetch mnist --out data/mnist

Training looks for data in $PACELINE_DATA/NAME and ./data/NAME unless --data says where.)";

constexpr char kVerifyFooter[] = R"(Examples:
  paceline data verify data/cassava
  paceline data verify data/cassava --threads 8 --json

Exit code 0: whole; 1: something is wrong; 65: there is no data set.)";

struct DataArguments {
  std::string set, folder;
  MakeOptions make;
  FetchOptions fetch;
  std::int64_t images = -1, tokens = -1;
  int threads = 0;
  bool json = false, quiet = false, dry_run = false;
};

int count_threads(const DataArguments& a) {
  return a.threads > 0 ? a.threads : static_cast<int>(topology_of_machine().cpus.size());
}

void check_options_of_set(const DataArguments& a) {
  const auto refuse = [&](bool given, const char* options, const char* set) {
    if (!given || a.set == set) return;
    throw usage_error(fmt::format("{} for set {}, not for {}", options, set, a.set), "",
                      "see paceline data make --help");
  };
  const MakeOptions unset;
  refuse(a.tokens >= 0, "--tokens is", "text");
  refuse(a.make.shards || a.make.size_min != unset.size_min || a.make.size_max != unset.size_max,
         "--shards, --size-min and --size-max are", "cassava");
  if (a.set == "text" && a.images >= 0) {
    throw usage_error("text has no images", "--images", "give --tokens");
  }
}

int make(const DataArguments& a) {
  check_options_of_set(a);
  const bool text = a.set == "text";
  if ((text ? a.tokens : a.images) < 0) {
    throw usage_error(text ? "--tokens is required" : "--images is required", "",
                      "see paceline data make --help");
  }
  MakeOptions options = a.make;
  options.images = static_cast<std::size_t>(std::max<std::int64_t>(0, a.images));
  options.tokens = static_cast<std::size_t>(std::max<std::int64_t>(0, a.tokens));
  options.threads = count_threads(a);
  options.quiet = a.quiet;
  const double began = now_seconds();
  const Made made = make_set(a.set, options);
  const double seconds = now_seconds() - began;
  const std::string out = options.out.string();
  if (made.entropy) {
    print(
        "{}: {} synthetic tokens, {} of them for training; entropy of a token: {:.5f} nats, which "
        "losses approach from above\n",
        out, made.bytes, options.tokens, *made.entropy);
  } else if (!a.quiet) {
    print("{}: {} synthetic images, {} of them for training, {}, in {} ({:.0f} images/s)\n", out,
          made.images, options.images, format_bytes(static_cast<double>(made.bytes)),
          format_seconds(seconds), static_cast<double>(made.images) / std::max(seconds, 1e-9));
  }
  return 0;
}

int fetch(const DataArguments& a) {
  const PublishedSet& set = published_set_at(a.set);
  FetchOptions options = a.fetch;
  options.quiet = a.quiet;
  options.threads = count_threads(a);
  print("{}", describe_fetch(set, options));
  flush_output();
  if (a.dry_run) return 0;
  print("{}\n", fetch_set(set, options));
  return 0;
}

int verify(const DataArguments& a) {
  const Verified verified = verify_folder(a.folder, count_threads(a), a.quiet || a.json);
  print_text(a.json ? json_text(to_json(verified), 2) + "\n" : to_text(verified));
  return verified.whole() ? 0 : 1;
}

void add_common(CLI::App& verb, DataArguments& a) {
  verb.add_option("--threads", a.threads, "threads [default: the CPUs of this process]")
      ->check(CLI::Range(1, 1024));
  verb.add_flag("--quiet", a.quiet, "no progress");
}

void add_make(CLI::App& data, const std::shared_ptr<DataArguments>& a, Action& action) {
  CLI::App* verb = data.add_subcommand("make", "Make a synthetic set in the format of a real one");
  verb->add_option("set", a->set, "cassava, cifar10 or text")->required();
  verb->add_option("--images", a->images, "images in the training split");
  verb->add_option("--tokens", a->tokens, "text: tokens in the training split");
  add_value(*verb, "--out FOLDER", a->make.out, "write the set to this new folder")->required();
  add_value(*verb, "--test INT", a->make.test,
            "images or tokens in the test split (cassava: also in validation)")
      ->check(CLI::NonNegativeNumber);
  add_setting(*verb, "--seed INT", a->make.seed, "seed of the images")
      ->check(CLI::NonNegativeNumber);
  add_value(*verb, "--shards INT", a->make.shards,
            "cassava: files of the training split [default: 8]")
      ->check(CLI::PositiveNumber);
  add_setting(*verb, "--size-min", a->make.size_min, "cassava: shortest side in pixels");
  add_setting(*verb, "--size-max", a->make.size_max, "cassava: longest side in pixels");
  add_common(*verb, *a);
  verb->footer(kMakeFooter);
  verb->callback([a, &action] { action = [a] { return make(*a); }; });
}

void add_fetch(CLI::App& data, const std::shared_ptr<DataArguments>& a, Action& action) {
  CLI::App* verb = data.add_subcommand("fetch", "Download a published set or weights");
  verb->add_option("set", a->set, "mnist, cifar10, cassava or resnet50-imagenet")->required();
  add_value(*verb, "--out FOLDER", a->fetch.out, "download into this folder")->required();
  add_value(*verb, "--mirror URL", a->fetch.mirror, "download from this URL instead");
  verb->add_flag("--dry-run", a->dry_run, "print URLs, sizes and checksums, download nothing");
  verb->add_flag("--tfrecord", a->fetch.tfrecord,
                 "cassava: write TFRecord shards from the class folders");
  add_setting(*verb, "--retries", a->fetch.retries,
              "retries after a network failure, with growing pauses")
      ->check(CLI::Range(0, 100));
  add_setting(*verb, "--timeout SECONDS", a->fetch.stalled_seconds,
              "time without a byte that counts as a network failure")
      ->check(CLI::Range(1, 3600));
  add_common(*verb, *a);
  verb->footer(kFetchFooter);
  verb->callback([a, &action] { action = [a] { return fetch(*a); }; });
}

void add_verify(CLI::App& data, const std::shared_ptr<DataArguments>& a, Action& action) {
  CLI::App* verb = data.add_subcommand("verify", "Check every record and image of a data set");
  verb->add_option("DIR", a->folder, "folder of the set")->required();
  verb->add_flag("--json", a->json, "print JSON");
  add_common(*verb, *a);
  verb->footer(kVerifyFooter);
  verb->callback([a, &action] { action = [a] { return verify(*a); }; });
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<DataArguments>();
  CLI::App* verb = app.add_subcommand("data", "Make, fetch or verify data sets and weights");
  verb->require_subcommand(1);
  verb->footer(kDataFooter);
  add_make(*verb, arguments, action);
  add_fetch(*verb, arguments, action);
  add_verify(*verb, arguments, action);
}

}  // namespace paceline
