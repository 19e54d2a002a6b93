// paceline bench input
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/study_options.h"
#include "cli/verb.h"
#include "engine/core/output.h"
#include "run/bench.h"

namespace paceline {

namespace {

constexpr char kBenchInputFooter[] = R"(Examples:
  paceline bench input --data cassava
  paceline bench input --data cassava --input-threads 4 --cache raw --json
  paceline bench input --data photographs --size 224x224 --samples 500
  paceline bench input --data cassava --augment hflip+crop16

First one thread reads, decodes and resizes every image, each stage timed by itself; then batches
are fed for --epochs epochs, the first of which fills the cache. Nothing computes meanwhile, so a
rate here is the most that training can get.)";

struct InputArguments : BenchInputOptions {
  std::string on_bad_sample = "fail";
  bool json = false;
};

int bench(InputArguments& arguments) {
  arguments.skip_bad = arguments.on_bad_sample == "skip";
  const BenchedInput benched = bench_input(arguments);
  if (arguments.json) {
    print("{}\n", json_text(to_json(benched), 2));
  } else {
    print_documents({to_document(benched)}, {});
  }
  return 0;
}

}  // namespace

void add_bench_input(CLI::App& bench_verb, Action& action) {
  CLI::App* verb =
      bench_verb.add_subcommand("input", "Benchmark reading, decoding and resizing images");
  auto a = std::make_shared<InputArguments>();
  add_value(*verb, "--data FOLDER", a->data, "folder of an image set")->required();
  add_setting(*verb, "--split NAME", a->split, "split of the set");
  add_setting(*verb, "--size HxW", a->size, "image size after the resize");
  verb->add_option("--samples", a->samples, "use only the first N samples [default: all]")
      ->check(CLI::Range(0, 1 << 30));
  add_setting(*verb, "--batch", a->batch, "samples per batch")->check(CLI::Range(1, 1 << 20));
  add_setting(*verb, "--input-threads", a->input_threads,
              "threads that prepare batches; 0 prepares them inline")
      ->check(CLI::Range(0, 4096));
  verb->add_option("--parallel-reads", a->parallel_reads,
                   "samples read at once [default: one per thread]")
      ->check(CLI::Range(0, 4096));
  verb->add_option("--read-buffer-kb", a->read_buffer_kb,
                   "largest read call in KiB [default: a whole sample]")
      ->check(CLI::Range(0, 1 << 20));
  add_setting(*verb, "--epochs", a->epochs, "epochs")->check(CLI::Range(1, 1000));
  add_setting(*verb, "--cache", a->cache, "what the cache keeps")
      ->check(CLI::IsMember({"off", "raw", "decoded"}));
  add_setting(*verb, "--cache-type", a->cache_type, "element type of decoded samples in the cache")
      ->check(CLI::IsMember({"uint8", "fp32"}));
  verb->add_option("--cache-mb", a->cache_mb,
                   "cache size in MiB [default: half of the free memory]")
      ->check(CLI::Range(0, 1 << 30));
  add_value(*verb, "--cache-dir FOLDER", a->cache_folder, "cache overflow folder");
  add_setting(*verb, "--on-bad-sample", a->on_bad_sample,
              "what to do with a sample that cannot be decoded")
      ->check(CLI::IsMember({"fail", "skip"}));
  add_setting(*verb, "--augment NAMES", a->augment, "hflip, vflip, cropN, joined by +; or none");
  verb->add_flag("--json", a->json, "print JSON");
  verb->footer(kBenchInputFooter);
  verb->callback([a, &action] { action = [a] { return bench(*a); }; });
}

}  // namespace paceline
