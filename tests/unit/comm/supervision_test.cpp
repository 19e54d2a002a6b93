// Steps and waits reach whoever supervises the innermost communicator, through every wrapper.
#include <gtest/gtest.h>

#include "engine/comm/wrappers/cast/cast_communicator.h"
#include "engine/comm/wrappers/recorded/recorded_communicator.h"
#include "engine/core/error.h"
#include "tests/support/communicators.h"

namespace paceline {
namespace {

class Noted : public Supervision {
 public:
  void throw_if_ended() override { throw Error(ErrorKind::stall, "ended"); }
  void begin_wait(std::string_view label) noexcept override { waits = label; }
  void end_wait() noexcept override { waits = {}; }
  void note_step(std::uint64_t number) noexcept override { step = number; }
  void note_last_step(std::uint64_t number) noexcept override { last_step = number; }

  std::string_view waits;
  std::uint64_t step = 0, last_step = 0;
};

class Alone : public IdleCommunicator {
 public:
  explicit Alone(Noted& noted) : IdleCommunicator(1), noted_(noted) {}
  Supervision& supervision() override { return noted_; }

 private:
  Noted& noted_;
};

TEST(Supervision, NobodyListensUnlessThereIsOne) {
  class Plain : public Alone {
   public:
    using Alone::Alone;
    Supervision& supervision() override { return Communicator::supervision(); }
  };
  Noted noted;
  Plain plain(noted);
  plain.supervision().note_step(3);
  EXPECT_NO_THROW(plain.supervision().throw_if_ended());
  EXPECT_EQ(noted.step, 0U);
}

TEST(Supervision, AWrapperHandsOnWhatItWraps) {
  Noted noted;
  CastCommunicator cast(std::make_unique<Alone>(noted));
  EXPECT_EQ(&cast.supervision(), &noted);
}

TEST(Supervision, TheRecorderNotesItToo) {
  Noted noted;
  auto recording = std::make_shared<Recording>();
  recording->rings.push_back(std::make_shared<FlightRing>(FlightRing::Identity{}, std::nullopt));
  RecordedCommunicator recorded(std::make_unique<Alone>(noted), recording, 0);
  recorded.supervision().note_last_step(9);
  recorded.supervision().note_step(2);
  EXPECT_EQ(noted.step, 2U);
  EXPECT_EQ(noted.last_step, 9U);
  EXPECT_TRUE(recording->settled);
  {
    const StreamWait wait(recorded, "bucket 1");
    EXPECT_EQ(noted.waits, "bucket 1");
  }
  EXPECT_TRUE(noted.waits.empty());
  EXPECT_THROW(recorded.supervision().throw_if_ended(), Error);
}

}  // namespace
}  // namespace paceline
