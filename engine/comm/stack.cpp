#include "engine/comm/stack.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "engine/comm/hierarchical.h"
#include "engine/core/backend_stack.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

template <typename Function>
Function factory_of(const std::vector<Factory<Function>>& table, const std::string& name) {
  for (const auto& row : table) {
    if (name == row.name) return row.make;
  }
  throw Error(ErrorKind::usage, fmt::format("\"{}\" is not built here", name), "",
              "see: paceline list backends");
}

}  // namespace

std::unique_ptr<Backend> make_backend(std::string_view text,
                                      const std::vector<Factory<BackendFactory>>& backends,
                                      const std::vector<Factory<WrapperFactory>>& wrappers) {
  const BackendStack stack = split_stack(text);
  auto backend = factory_of(backends, stack.between)();
  if (!stack.inside.empty()) {
    backend = make_hierarchical_backend(factory_of(backends, stack.inside)(), std::move(backend));
  }
  for (const std::string& wrapper : stack.wrappers) {
    backend = factory_of(wrappers, wrapper)(std::move(backend));
  }
  return backend;
}

}  // namespace paceline
