#include <gtest/gtest.h>

#include "run/checkpoints.h"

namespace paceline {
namespace {

Point given(const std::vector<std::pair<std::string, std::string>>& values) {
  Point point;
  for (const auto& [name, text] : values) point.set(name, parsed_value(name, text, ""));
  return point;
}

TEST(EventFiles, ARunIsNamedByWhatSetsItApart) {
  const EventPlaces places = event_places({"logs", 2}, "mnist-mlp",
                                          given({{"epochs", "3"},
                                                 {"weights", "/data/w.h5"},
                                                 {"tensorboard", "logs"},
                                                 {"keep_checkpoints", "1"}}));
  EXPECT_EQ(places.folder, "logs");
  EXPECT_EQ(places.name, "mnist-mlp,epochs=3");
  EXPECT_EQ(places.histogram_every, 2);
  EXPECT_EQ(event_places({"logs", 0}, "mnist-mlp", {}).name, "mnist-mlp");
}

TEST(EventFiles, NoneWithoutAFolder) {
  EXPECT_TRUE(event_places({}, "mnist-mlp", given({{"epochs", "3"}})).folder.empty());
}

}  // namespace
}  // namespace paceline
