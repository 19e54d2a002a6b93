#include <algorithm>

#include "engine/core/text.h"
#include "engine/device/cpu/conv.h"
#include "engine/device/cpu/library.h"

namespace paceline::cpu {

constexpr EnumName<Layout> kLayoutNames[] = {
    {Layout::nhwc, "nhwc"}, {Layout::nchw, "nchw"}, {Layout::blocked, "nChw16c"}};

const char* to_string(Layout layout) {
  return name_in(kLayoutNames, layout);
}

namespace {

// Chooses the layout of each tensor: blocked where that pays and its operations support it.
class LayoutChooser {
 public:
  LayoutChooser(const Plan& plan, bool blocked_pays)
      : plan_(plan), layouts_(plan.tensors.size(), Layout::nhwc) {
    if (!blocked_pays || plan.activation != DType::f32) return;
    for (const Operation& op : plan.operations) {
      if (may_be_blocked(op)) layout(op.output) = Layout::blocked;
    }
    while (spread_nhwc()) {
    }
    for (const Operation& op : plan.operations) {
      if (op.kind == OpKind::cast_input && feeds_convolutions_only(op.output)) {
        layout(op.output) = Layout::nchw;
      }
    }
  }

  std::vector<Layout> run() {
    for (const Operation& op : plan_.operations) {
      if (op.output_grad != kNone) layout(op.output_grad) = layout(op.output);
    }
    return std::move(layouts_);
  }

 private:
  Layout& layout(int tensor) { return layouts_[static_cast<std::size_t>(tensor)]; }

  static bool may_be_blocked(const Operation& op) {
    const bool plane = op.kind == OpKind::conv || op.kind == OpKind::batch_norm ||
                       op.kind == OpKind::relu || op.kind == OpKind::add ||
                       op.kind == OpKind::max_pool;
    return plane && op.out.channels % kBlock == 0 && !is_stem(op);
  }

  // Element-wise operations have one layout. A dense layer needs NHWC, and so does a convolution
  // whose output cannot be blocked. Returns whether a tensor changed.
  bool spread_nhwc() {
    bool changed = false;
    const auto to_nhwc = [&](int tensor) {
      if (tensor == kNone || layout(tensor) == Layout::nhwc) return;
      layout(tensor) = Layout::nhwc;
      changed = true;
    };
    for (const Operation& op : plan_.operations) {
      if (op.kind == OpKind::average_pool || op.input == kNone) continue;
      if (op.kind == OpKind::conv) {
        if (layout(op.output) == Layout::nhwc) to_nhwc(op.input);
        continue;
      }
      const bool mixed = layout(op.input) == Layout::nhwc || layout(op.output) == Layout::nhwc ||
                         (op.input2 != kNone && layout(op.input2) == Layout::nhwc);
      if (op.kind != OpKind::dense && !mixed) continue;
      for (const int tensor : {op.input, op.input2, op.output}) to_nhwc(tensor);
    }
    return changed;
  }

  // With fewer channels than a block, oneDNN is fast for NCHW only.
  bool feeds_convolutions_only(int tensor) const {
    return std::ranges::all_of(plan_.operations, [&](const Operation& op) {
      if (op.input != tensor && op.input2 != tensor) return true;
      return op.kind == OpKind::conv && !is_stem(op) &&
             layouts_[static_cast<std::size_t>(op.output)] == Layout::blocked;
    });
  }

  const Plan& plan_;
  std::vector<Layout> layouts_;
};

}  // namespace

std::vector<Layout> choose_layouts(const Plan& plan, bool blocked_pays) {
  return LayoutChooser(plan, blocked_pays).run();
}

}  // namespace paceline::cpu
