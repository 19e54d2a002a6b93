// "mpi+bf16", "gloo+fp16".
#include <fmt/format.h>

#include <string>
#include <utility>

#include "engine/comm/backend.h"
#include "engine/comm/wrappers/cast/cast_communicator.h"
#include "engine/core/error.h"

namespace paceline {

namespace {

class CastBackend final : public Backend {
 public:
  CastBackend(std::unique_ptr<Backend> inner, DType travels_as, std::string_view wrapper)
      : inner_(std::move(inner)),
        travels_as_(travels_as),
        name_(fmt::format("{}+{}", inner_->name(), wrapper)) {
    if (dynamic_cast<CastBackend*>(inner_.get()) == nullptr) return;
    throw Error(ErrorKind::usage, fmt::format("{} casts twice", name_), "",
                "choose one of +bf16 and +fp16");
  }

  std::string_view name() const override { return name_; }
  Support serves(const Membership& membership) const override { return inner_->serves(membership); }
  std::vector<std::unique_ptr<Communicator>> connect(const Membership& membership) override {
    auto communicators = inner_->connect(membership);
    for (auto& communicator : communicators) {
      if (!communicator->reduces(MemoryKind::host)) {
        throw Error(ErrorKind::usage, fmt::format("{} cannot cast in GPU memory", name_), "",
                    "leave the wrapper out: gradients of --precision bf16 are bf16 already");
      }
      communicator = std::make_unique<CastCommunicator>(std::move(communicator), travels_as_);
    }
    return communicators;
  }
  // In fp32: what a program has that does not cast.
  std::string library() const override { return inner_->library(); }
  std::string description() const override {
    return fmt::format("{}; fp32 travels as {}", inner_->description(),
                       paceline::to_string(travels_as_));
  }

 private:
  std::unique_ptr<Backend> inner_;
  DType travels_as_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Backend> make_bf16_wrapper(std::unique_ptr<Backend> inner) {
  return std::make_unique<CastBackend>(std::move(inner), DType::bf16, "bf16");
}

std::unique_ptr<Backend> make_fp16_wrapper(std::unique_ptr<Backend> inner) {
  return std::make_unique<CastBackend>(std::move(inner), DType::f16, "fp16");
}

}  // namespace paceline
