// The results of programs, and where common ones print them. The expressions are tried on lines as
// these print them in tests/unit/run/result_presets_test.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "sweeps/program.h"
#include "sweeps/result_source.h"

namespace paceline {

namespace {

constexpr EnumName<Pick> kPicks[] = {
    {Pick::only, "only"},     {Pick::first, "first"}, {Pick::last, "last"}, {Pick::mean, "mean"},
    {Pick::median, "median"}, {Pick::least, "min"},   {Pick::most, "max"}};

}  // namespace

const std::vector<ResultName>& result_names() {
  static const std::vector<ResultName> names = {
      {"samples_per_second", "throughput of all replicas together", false},
      {"tokens_per_second", "the same in tokens", false, {}, "tokens"},
      {"images_per_second", "the same in images", false, {}, "images"},
      {"steps_per_second", "the same in steps", false, {}, "steps"},
      {"fit_seconds", "seconds of training; else those of the program, from start to end", false},
      {"samples", "samples in fit_seconds", false},
      {"tokens_per_step", "tokens of one step of all replicas", false, {}, "tokens"},
      {"tokens", "tokens in fit_seconds", false, {}, "tokens"},
      {"images", "images in fit_seconds", false, {}, "images"},
      {"steps", "steps in fit_seconds", false},
      {"global_batch", "samples of one step", false},
      {"parameter_count", "trainable parameters", false},
      {"precision", "of its products, as fp32", false, "fp32|tf32|bf16|fp16|fp64"},
      {"test_accuracy", "0 to 1", false},
      {"train_loss", "of the last epoch", false},
      {"step_seconds", "of each step after the warm-up", true},
      {"epoch_seconds", "of each epoch", true},
  };
  return names;
}

const std::vector<ResultPreset>& result_presets() {
  static const std::vector<ResultPreset> presets = {
      {"nanogpt", "nanoGPT's train.py", R"json({
        "tokens_per_step": {"line": "tokens per iteration will be: {grouped}"},
        "step_seconds": {"line": "time {number}ms", "among": "^iter \\d+:", "scale": 0.001,
                         "not_between": ["^step \\d+: train loss", "^iter \\d+:"]},
        "train_loss": {"line": "loss {number}", "among": "^iter \\d+:", "pick": "last"}})json"},
      {"llm.c", "llm.c's train_gpt2cu", R"json({
        "tokens_per_second": {"line": "\\| {number} tok/s", "among": "^step +\\d+/\\d+ \\|", "pick": "last"},
        "step_seconds": {"line": "\\| +{number} ms \\|", "among": "^step +\\d+/\\d+ \\|", "scale": 0.001},
        "train_loss": {"line": "\\| loss {number}", "among": "^step +\\d+/\\d+ \\|", "pick": "last"}})json"},
      {"megatron-lm", "Megatron-LM's training log", R"json({
        "step_seconds": {"line": "elapsed time per iteration \\(ms\\): {number}",
                         "among": "iteration +\\d+/ *\\d+ \\|", "scale": 0.001},
        "global_batch": {"line": "global batch size: *{number}", "among": "iteration +\\d+/ *\\d+ \\|",
                         "pick": "last"},
        "train_loss": {"line": "lm loss: {number}", "pick": "last"}})json"},
      {"deepspeed", "DeepSpeed's throughput timer", R"json({
        "samples_per_second": {"line": "RunningAvgSamplesPerSec={number}", "pick": "last"}})json"},
      {"torchtitan", "torchtitan's metrics, which are of a GPU", R"json({
        "tokens_per_second": {"line": "tps: {grouped}", "among": "(?<!validate )step: +\\d+ ", "pick": "median",
                              "per_replica": true},
        "train_loss": {"line": "loss: +{number}", "among": "(?<!validate )step: +\\d+ ", "pick": "last"}})json"},
      {"lightning", "Lightning's progress bar of training", R"json({
        "steps_per_second": {"line": "[ ,]{number}it/s", "pick": "last",
                             "among": "^Epoch \\d+(?:: .* [1-9]\\d*/\\d+ \\[|/-?\\d+ .* [1-9]\\d*/\\d+ \\d+:\\d\\d:)",
                             "not_between": ["^Validation", "^Epoch \\d+: .* 0/\\d+ \\["]}})json"},
      {"huggingface", "the summary of Hugging Face's Trainer", R"json({
        "samples_per_second": {"line": "'train_samples_per_second': '?{number}", "pick": "last"},
        "fit_seconds": {"line": "'train_runtime': '?{number}", "pick": "last"},
        "train_loss": {"line": "'train_loss': '?{number}", "pick": "last"}})json"},
      {"keras", "Keras' fit, with its progress bar or with verbose=2", R"json({
        "step_seconds": {"line": "{duration}/step", "pick": "last",
                         "among": "^ *(\\d+)/(?!\\1 )\\d+ .*/step|^(\\d+)/\\2 (?:\\[=+\\] )?- ",
                         "not_between": ["^ *(\\d+)/\\1 ", "^Epoch \\d+/"]}})json"},
      {"horovod", "Horovod's synthetic benchmarks", R"json({
        "images_per_second": {"line": "Total img/sec on \\d+ [^:]*: {number}"}})json"},
      {"torch-imagenet", "PyTorch's examples/imagenet/main.py", R"json({
        "step_seconds": {"line": "Time +{number} \\(", "among": "^Epoch: \\["}})json"}};
  return presets;
}

bool is_preset(std::string_view name) {
  return std::ranges::find(result_presets(), name, &ResultPreset::name) != result_presets().end();
}

JsonFieldReaders result_readers(ResultSource& source,
                                const std::function<std::string(const JsonField&)>& filled_text) {
  const std::vector<std::string> more_or_less = {"more", "less"};
  JsonFieldReaders readers = {
      {"file",
       {[&source, filled_text](const JsonField& file) { source.file = filled_text(file); },
        R"({"type": "string"})"}},
      {"pick", into(source.pick, kPicks)},
      {"scale",
       {[&source](const JsonField& scale) {
          source.scale = scale.above_zero();
          source.has_scale = true;
        },
        kAboveZeroSchema}},
      {"per_replica", into(source.per_replica)},
      {"unit",
       {[&source](const JsonField& unit) { source.unit = unit.text(); },
        text_schema(R"([\\"<>|,;\n]|^\s|\s$)", kLongestUnit)}},
      {"better",
       {[&source, more_or_less](const JsonField& better) {
          source.better = better.choice(more_or_less);
        },
        choice_schema(more_or_less)}},
      {"among",
       {[&source](const JsonField& among) { source.among = text_without_zero(among); },
        R"({"type": "string"})"}},
      {"not_between",
       {[&source](const JsonField& pair) {
          source.not_between = pair.texts();
          if (source.not_between.size() == 2) return;
          pair.fail("\"not_between\" is not a list of two expressions",
                    "write [\"^Validation\", \"^Epoch\"]");
        },
        R"({"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 2, "maxItems": 2})"}}};
  for (const auto& [from, key] : kResultSources) {
    const auto read = [&source, from = from](const JsonField& what) {
      if (!source.what.empty()) {
        what.fail(fmt::format("result {} has two sources", source.name), "keep one of them");
      }
      source.from = from;
      source.what = text_without_zero(what);
    };
    readers.emplace_back(key, JsonFieldReader(read, kTextSchema));
  }
  return readers;
}

}  // namespace paceline
