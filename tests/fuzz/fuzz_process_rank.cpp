// Launcher variables from an untrusted environment, one NAME=VALUE a line.
#include <string>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/launch/process_rank.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  paceline::Environment environment;
  for (const std::string& line : paceline::split(text, '\n')) {
    const auto equals = line.find('=');
    if (equals != std::string::npos) environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  try {
    paceline::find_process_rank(environment);
  } catch (const paceline::Error&) {
  }
  return 0;
}
