#include "run/event_files.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "engine/core/error.h"
#include "engine/core/file.h"

namespace paceline {

namespace {

constexpr std::size_t kLongestName = 200;  // of 255 bytes that file systems take

}  // namespace

EventPlaces event_places(const EventConfig& config, const std::string& workload,
                         const Point& given) {
  EventPlaces places;
  if (config.folder.empty()) return places;
  places.folder = config.folder;
  places.histogram_every = config.histogram_every;
  Point naming;
  for (const auto& [name, value] : given.values()) {
    const Parameter& parameter = *find_parameter(name);
    if (parameter.identity() && !parameter.is_file) naming.set(name, value);
  }
  places.name = naming.empty() ? workload : workload + ',' + naming.folder();
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
