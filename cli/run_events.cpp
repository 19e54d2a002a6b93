#include "cli/run_events.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "engine/core/error.h"
#include "engine/core/file.h"

namespace paceline {

namespace {

constexpr std::size_t kLongestName = 200;  // of 255 bytes that file systems take

}  // namespace

void check_events(const Point& parameters) {
  if (parameters.find("tensorboard") || !parameters.find("histogram_freq")) return;
  throw Error(ErrorKind::usage, "histogram_freq is for TensorBoard, and nothing is written for it",
              "", "give --tensorboard too");
}

EventPlaces event_places(const Point& parameters, const std::string& workload, const Point& given) {
  EventPlaces places;
  const auto folder = parameters.text("tensorboard");
  if (!folder) return places;
  places.folder = *folder;
  Point naming = given;
  for (const char* other : {"tensorboard", "histogram_freq", "log_every", "keep", "weights"}) {
    naming.erase(other);
  }
  places.name = naming.empty() ? workload : workload + ',' + naming.folder();
  places.histogram_every = static_cast<int>(parameters.integer("histogram_freq").value_or(0));
  return places;
}

EventSetup event_setup(const EventPlaces& places) {
  const std::string name =
      fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::gmtime(std::time(nullptr)), places.name)
          .substr(0, kLongestName);
  EventSetup setup;
  setup.folder = places.folder / name;
  make_folder(places.folder);
  std::error_code error;
  for (int number = 2; !std::filesystem::create_directory(setup.folder, error); ++number) {
    if (error) make_folder(setup.folder);  // throws the reason
    setup.folder = places.folder / fmt::format("{}-{}", name, number);
  }
  setup.histogram_every = places.histogram_every;
  return setup;
}

}  // namespace paceline
