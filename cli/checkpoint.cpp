// paceline checkpoint show|verify|export

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verb.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/output.h"
#include "engine/core/text.h"
#include "engine/train/checkpoint/folder.h"
#include "engine/train/checkpoint/format.h"
#include "engine/train/weights.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

constexpr char kCheckpointFooter[] = R"(Examples:
  paceline checkpoint show runs/mnist-cnn                       # those of a run, or one
  paceline checkpoint verify runs/mnist-cnn/checkpoints/mnist-cnn-0003
  paceline checkpoint export runs/resnet50-cassava/model resnet.safetensors --names torch

A checkpoint's parameters.safetensors opens in Python as it is:
  from safetensors.numpy import load_file; load_file("model/parameters.safetensors"))";

struct CheckpointOptions {
  std::string path, out, names = "keras";
  bool json = false;
};

// One that cannot be read hides no other.
int show(const CheckpointOptions& options) {
  const std::vector<fs::path> folders = named_checkpoints(options.path);
  int code = 0;
  Json all = Json::array();
  for (const fs::path& folder : folders) {
    try {
      const CheckpointManifest manifest = read_manifest(folder);
      if (!options.json) {
        print_text(folder.string() + "\n" + manifest.text());
        continue;
      }
      Json json = Json::parse(manifest.json());
      json["folder"] = folder.string();
      all.push_back(std::move(json));
    } catch (const Error& error) {
      if (folders.size() == 1) throw;
      code = 1;
      if (options.json) {
        all.push_back({{"folder", folder.string()}, {"damage", error.what()}});
      } else {
        print("damaged  {}\n", error.what());
      }
    }
  }
  if (options.json) print("{}\n", json_text(all, 2));
  return code;
}

// Every one is looked at; the exit code says whether all are whole.
int verify(const CheckpointOptions& options) {
  int code = 0;
  Json all = Json::array();
  for (const fs::path& folder : named_checkpoints(options.path)) {
    std::string damage;
    std::size_t bytes = 0;
    try {
      const CheckpointManifest manifest = read_manifest(folder);
      verify_checkpoint(folder, manifest);
      bytes = manifest.bytes();
    } catch (const Error& error) {
      damage = error.what();
      code = 1;
    }
    if (options.json) {
      all.push_back({{"folder", folder.string()}, {"whole", damage.empty()}, {"damage", damage}});
    } else if (damage.empty()) {
      print("whole    {} ({})\n", folder.string(), format_bytes(static_cast<double>(bytes)));
    } else {
      print("damaged  {}\n", damage);
    }
  }
  if (options.json) print("{}\n", json_text(all, 2));
  return code;
}

int export_model(const CheckpointOptions& options) {
  const fs::path folder = options.path;
  verify_checkpoint(folder, read_manifest(folder));
  OutputFile(options.out, "--out", "model").check();
  std::vector<NamedTensor> tensors = read_safetensors(folder / kParametersFile);
  if (options.names == "torch") {
    for (NamedTensor& tensor : tensors) tensor = in_torch_form(std::move(tensor));
  }
  write_safetensors(options.out, tensors);
  print("{}: {} tensors, {}\n", options.out, tensors.size(),
        format_bytes(static_cast<double>(fs::file_size(options.out))));
  return 0;
}

}  // namespace

void add_checkpoint(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("checkpoint", "Inspect, verify or export checkpoints");
  verb->footer(kCheckpointFooter);  // before its verbs, which take it over
  auto options = std::make_shared<CheckpointOptions>();
  const auto add = [&](const char* name, const char* help,
                       int (*act)(const CheckpointOptions&)) -> CLI::App* {
    CLI::App* sub = verb->add_subcommand(name, help);
    sub->add_option("path", options->path, "folder of a checkpoint, or of a run")->required();
    sub->callback([options, act, &action] { action = [options, act] { return act(*options); }; });
    return sub;
  };
  add("show", "Show progress, model and origin (exit code 1: one of several cannot be read)", show)
      ->add_flag("--json", options->json, "as JSON");
  add("verify", "Compare every file with its checksum (exit code 1: one is damaged)", verify)
      ->add_flag("--json", options->json, "as JSON");
  CLI::App* out = add("export", "Export the model as one safetensors file", export_model);
  out->add_option("file", options->out, "a new .safetensors file")->required();
  out->add_option("--names", options->names,
                  "names of parameters: keras (as stored) or torch (as in torchvision)")
      ->check(CLI::IsMember({"keras", "torch"}));
  verb->require_subcommand(1);
}

}  // namespace paceline
