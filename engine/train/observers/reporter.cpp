#include <utility>

#include "engine/train/observers/observers.h"

namespace paceline {

namespace {

class Reporter : public TrainingObserver {
 public:
  explicit Reporter(std::function<void(const Progress&)> report) : report_(std::move(report)) {}
  bool wants_progress() const override { return true; }
  void progressed(TrainingState&, const Progress& progress) override { report_(progress); }

 private:
  std::function<void(const Progress&)> report_;
};

}  // namespace

std::unique_ptr<TrainingObserver> make_reporter(std::function<void(const Progress&)> report) {
  return std::make_unique<Reporter>(std::move(report));
}

}  // namespace paceline
