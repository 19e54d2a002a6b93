#include "engine/comm/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/core/backend_stack.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

template <typename Function>
Function factory_at(const std::vector<Factory<Function>>& table, const std::string& name) {
  if (const auto* row = find_factory(table, name)) return row->make;
  throw usage_error(fmt::format("\"{}\" is not built here", name), "",
                    "see: paceline list backends");
}

template <typename Function>
bool has(const std::vector<Factory<Function>>& table, std::string_view name) {
  return std::any_of(table.begin(), table.end(), [&](const auto& row) { return name == row.name; });
}

}  // namespace

std::unique_ptr<Backend> Backend::around(std::unique_ptr<Backend> between) {
  throw usage_error(fmt::format("{}/{} cannot be stacked", name(), between->name()), "",
                    "use mirrored inside tasks, or ring inside nodes");
}

std::unique_ptr<Communicator> Backend::connect_group(const Membership&, const RankGroup&,
                                                     std::string_view) {
  throw usage_error(fmt::format("backend {} connects no pairs of ranks", name()), "",
                    "use ring, mpi or nccl");
}

std::unique_ptr<Backend> make_backend(std::string_view text,
                                      const std::vector<Factory<BackendFactory>>& backends,
                                      const std::vector<Factory<WrapperFactory>>& wrappers,
                                      MemoryKind gradients) {
  const BackendStack stack = split_stack(text);
  auto backend = factory_at(backends, stack.between)();
  auto inside = stack.inside.empty() ? nullptr : factory_at(backends, stack.inside)();
  if (gradients == MemoryKind::device) {
    const std::string_view instead = (inside ? inside : backend)->on_gpus();
    if (inside && instead == backend->name()) inside.reset();
    if (!inside && has(backends, instead)) backend = factory_at(backends, std::string(instead))();
  }
  if (inside) backend = inside->around(std::move(backend));
  for (const std::string& wrapper : stack.wrappers) {
    backend = factory_at(wrappers, wrapper)(std::move(backend));
  }
  return backend;
}

void sum_over_ranks(Communicator& communicator, std::span<double> values) {
  const auto size = static_cast<std::size_t>(communicator.size());
  std::vector<double> all(values.size() * size);
  communicator.all_gather(values.data(), values.size_bytes(), all.data());
  std::fill(values.begin(), values.end(), 0.0);
  for (std::size_t i = 0; i < all.size(); ++i) values[i % values.size()] += all[i];
}

std::vector<std::string> gather_texts(Communicator& communicator, const std::string& mine) {
  const std::uint64_t bytes = mine.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&bytes, sizeof bytes, sizes.data());
  const std::uint64_t most = *std::max_element(sizes.begin(), sizes.end());
  std::string padded = mine, all(most * sizes.size(), '\0');
  padded.resize(most);
  communicator.all_gather(padded.data(), most, all.data());
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < sizes.size(); ++r) texts.push_back(all.substr(r * most, sizes[r]));
  return texts;
}

}  // namespace paceline
