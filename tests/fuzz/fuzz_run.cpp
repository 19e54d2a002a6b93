// What a training run reads: texts and tokens, names of weights, the choices of cuDNN, and what a
// program of the user's own printed and wrote.
#include "engine/device/cuda/dnn/choices_file.h"
#include "engine/input/loading/dataset.h"
#include "engine/train/weights.h"
#include "run/program_run.h"
#include "tests/fuzz/parts.h"

namespace paceline {
namespace {

using Parts = std::vector<std::string_view>;

FuzzFolder& folder() {
  static FuzzFolder made;
  return made;
}

void read_tokens(std::string_view, const Parts& parts) {
  folder().fill({"train.bin", "val.bin", "train.txt", "val.txt"}, parts);
  load_tokens(folder().path(), 4, 256);
}

// A tensor a line, of the shape that is wanted first.
void map_names(std::string_view text, const Parts&) {
  const std::vector<WantedTensor> wanted = {{"h.0.attn.c_attn/kernel", {2, 6}},
                                            {"wte/tokens", {4, 2}},
                                            {"conv1_conv/kernel", {1, 1, 1, 1}},
                                            {"conv1_bn/gamma", {1}},
                                            {"predictions/kernel", {2, 2}}};
  std::vector<NamedTensor> tensors;
  for (const std::string& name : split(text, '\n')) {
    const std::vector<int>& shape = wanted[tensors.size() % wanted.size()].shape;
    std::size_t values = 1;
    for (const int extent : shape) values *= static_cast<std::size_t>(extent);
    tensors.push_back({name, shape, std::vector<float>(values, 1)});
  }
  map_weights(tensors, wanted, "fuzz");
}

void read_choices(std::string_view text, const Parts&) {
  folder().write("choices.json", text);
  const cuda::ChoicesFile choices(folder().path() / "choices.json");
}

// An expression or path, then what was printed; as each kind of source.
void find_results(std::string_view, const Parts& parts) {
  const std::string output(parts.back());
  folder().write("file", output);
  for (const ResultFrom from : {ResultFrom::line, ResultFrom::json, ResultFrom::json_line,
                                ResultFrom::key, ResultFrom::csv, ResultFrom::events}) {
    ResultSource source{"samples_per_second", from, std::string(parts[0]), "", Pick::last};
    if (from == ResultFrom::csv || from == ResultFrom::events) source.file = "file";
    try {
      ProgramResults results({source}, folder().path());
      results.append(output);
      results.finish([](const std::string& file) { return folder().path() / file; });
    } catch (const Error&) {
    }
  }
}

constexpr FuzzReader kReaders[] = {{"tokens", read_tokens},
                                   {"names", map_names},
                                   {"choices", read_choices},
                                   {"results", find_results}};

}  // namespace
}  // namespace paceline

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  paceline::run_reader(paceline::kReaders, data, size);
  return 0;
}
