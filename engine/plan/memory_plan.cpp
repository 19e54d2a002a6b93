#include "engine/plan/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace paceline {

namespace {

// Of a GPU's memory transactions, and what its products are timed with.
constexpr std::size_t kAlignment = 256;

bool live_together(const TensorInfo& a, const TensorInfo& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The lowest offset at which `tensor` meets none of `placed` while both live.
std::size_t lowest_gap(const TensorInfo& tensor, std::vector<const TensorInfo*> placed) {
  std::erase_if(placed, [&](const TensorInfo* other) { return !live_together(tensor, *other); });
  std::sort(placed.begin(), placed.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
  std::size_t offset = 0;
  for (const TensorInfo* other : placed) {
    if (offset + tensor.bytes <= other->offset) break;
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

}  // namespace

std::size_t place_tensors(std::vector<TensorInfo>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensors[a].bytes > tensors[b].bytes;
  });
  std::vector<const TensorInfo*> placed;
  std::size_t size = 0;
  for (const std::size_t index : order) {
    TensorInfo& tensor = tensors[index];
    tensor.bytes = (tensor.bytes + kAlignment - 1) / kAlignment * kAlignment;
    tensor.offset = lowest_gap(tensor, placed);
    placed.push_back(&tensor);
    size = std::max(size, tensor.offset + tensor.bytes);
  }
  return size;
}

}  // namespace paceline
