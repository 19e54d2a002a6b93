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
  verb->add_option("--data", a->data, "folder of an image set")->type_name("FOLDER")->required();
  verb->add_option("--split", a->split, "split of the set")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--size", a->size, "image size after the resize")
      ->type_name("HxW")
      ->capture_default_str();
  verb->add_option("--samples", a->samples, "use only the first N samples [default: all]")
      ->check(CLI::Range(0, 1 << 30));
  verb->add_option("--batch", a->batch, "samples per batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--input-threads", a->input_threads,
                   "threads that prepare batches; 0 prepares them inline")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  verb->add_option("--parallel-reads", a->parallel_reads,
                   "samples read at once [default: one per thread]")
      ->check(CLI::Range(0, 4096));
  verb->add_option("--read-buffer-kb", a->read_buffer_kb,
                   "largest read call in KiB [default: a whole sample]")
      ->check(CLI::Range(0, 1 << 20));
  verb->add_option("--epochs", a->epochs, "epochs")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  verb->add_option("--cache", a->cache, "what the cache keeps")
      ->capture_default_str()
      ->check(CLI::IsMember({"off", "raw", "decoded"}));
  verb->add_option("--cache-type", a->cache_type, "element type of decoded samples in the cache")
      ->capture_default_str()
      ->check(CLI::IsMember({"uint8", "fp32"}));
  verb->add_option("--cache-mb", a->cache_mb,
                   "cache size in MiB [default: half of the free memory]")
      ->check(CLI::Range(0, 1 << 30));
  verb->add_option("--cache-dir", a->cache_folder, "cache overflow folder")->type_name("FOLDER");
  verb->add_option("--on-bad-sample", a->on_bad_sample,
                   "what to do with a sample that cannot be decoded")
      ->capture_default_str()
      ->check(CLI::IsMember({"fail", "skip"}));
  verb->add_option("--augment", a->augment, "hflip, vflip, cropN, joined by +; or none")
      ->type_name("NAMES")
      ->capture_default_str();
  verb->add_flag("--json", a->json, "print JSON");
  verb->footer(kBenchInputFooter);
  verb->callback([a, &action] { action = [a] { return bench(*a); }; });
}

}  // namespace paceline
