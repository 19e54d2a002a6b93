// Runs a fuzz target once on each file of the folders given, and on prefixes of it: on every one of
// a small file, on about a thousand of a larger one.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

constexpr std::size_t kPrefixes = 1000;

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
      const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
      const std::size_t step = 1 + bytes.size() / kPrefixes;
      for (std::size_t size = 0; size < bytes.size(); size += step) {
        LLVMFuzzerTestOneInput(data, size);
      }
      LLVMFuzzerTestOneInput(data, bytes.size());
      ++files;
    }
  }
  std::printf("%d files replayed\n", files);
  return files > 0 ? 0 : 1;
}
