// Where common programs print their results. The expressions are tried on lines as these print them
// in tests/unit/run/result_presets_test.cpp.
#include <algorithm>

#include "sweeps/result_source.h"

namespace paceline {

const std::vector<ResultPreset>& result_presets() {
  static const std::vector<ResultPreset> presets = {
      {"nanogpt", "nanoGPT's train.py", R"json({
        "tokens_per_step": {"line": "tokens per iteration will be: {grouped}"},
        "step_seconds": {"line": "time {number}ms", "among": "^iter \\d+:", "scale": 0.001},
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
        "steps_per_second": {"line": "[ ,]{number}it/s", "among": "^Epoch \\d+: .* [1-9]\\d*/\\d+ \\[",
                             "pick": "last"}})json"},
      {"huggingface", "the summary of Hugging Face's Trainer", R"json({
        "samples_per_second": {"line": "'train_samples_per_second': '?{number}", "pick": "last"},
        "fit_seconds": {"line": "'train_runtime': '?{number}", "pick": "last"},
        "train_loss": {"line": "'train_loss': '?{number}", "pick": "last"}})json"},
      {"keras", "Keras with verbose=2", R"json({
        "epoch_seconds": {"line": "^\\d+/\\d+ - {number}s - ", "among": "^\\d+/\\d+ - "}})json"},
      {"horovod", "Horovod's synthetic benchmarks", R"json({
        "images_per_second": {"line": "Total img/sec on \\d+ [^:]*: {number}"}})json"},
      {"torch-imagenet", "PyTorch's examples/imagenet/main.py", R"json({
        "step_seconds": {"line": "Time +{number} \\(", "among": "^Epoch: \\["}})json"}};
  return presets;
}

bool is_preset(std::string_view name) {
  return std::ranges::find(result_presets(), name, &ResultPreset::name) != result_presets().end();
}

}  // namespace paceline
