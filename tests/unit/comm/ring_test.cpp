#include "engine/comm/algorithms/ring.h"

#include <gtest/gtest.h>

#include <functional>

#include "engine/comm/algorithms/sum.h"
#include "engine/comm/algorithms/wire_communicator.h"
#include "tests/support/expect_parts.h"
#include "tests/support/on_threads.h"
#include "tests/unit/comm/local_wire.h"

namespace paceline {
namespace {

void on_members(LocalNet& net, const std::function<void(LocalWire&)>& body) {
  on_threads(net.size(), [&](int rank) {
    LocalWire wire(net, rank);
    try {
      body(wire);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "member " << rank << ": " << error.what();
    }
  });
  EXPECT_FALSE(net.mismatched) << "a message met a receive of another size";
}

class RingOf : public testing::TestWithParam<int> {};

TEST_P(RingOf, SumsEverySizeInEveryType) {
  LocalNet net(GetParam());
  const std::size_t segment = LocalWire(net, 0).messages().bytes / 4;
  on_members(net, [&](LocalWire& wire) {
    Ring ring(wire);
    for (const DType type : {DType::f32, DType::bf16, DType::f64}) {
      for (const std::size_t count : std::vector<std::size_t>{
               0, 1, 2, 5, 63, 1000, segment - 1, segment, segment + 1, 3 * segment + 7,
               static_cast<std::size_t>(wire.size()) * segment * 6 + 11}) {
        std::vector<std::byte> data(count * size_of(type));
        fill_for_check(data.data(), count, type, wire.rank());
        ring.all_reduce(data.data(), count, type, "test");
        const SumCheck check = check_sum(data.data(), count, type, wire.size());
        EXPECT_EQ(check.wrong, 0U) << describe(check, count, type, wire.rank());
      }
    }
  });
}

TEST_P(RingOf, MovesNoMoreThanTheBound) {
  const auto members = static_cast<std::size_t>(GetParam());
  if (members == 1) return;
  LocalNet net(GetParam());
  constexpr std::size_t kCount = 1 << 14;
  on_members(net, [&](LocalWire& wire) {
    std::vector<float> data(kCount, 1.0F);
    Ring(wire).all_reduce(reinterpret_cast<std::byte*>(data.data()), kCount, DType::f32, "test");
  });
  EXPECT_EQ(net.bytes, 2 * (members - 1) * kCount * sizeof(float));  // over all members
}

TEST_P(RingOf, BroadcastsAndGathers) {
  LocalNet net(GetParam());
  on_members(net, [&](LocalWire& wire) {
    for (int root = 0; root < wire.size(); ++root) {
      std::vector<int> data(1000, wire.rank() == root ? 7 + root : 0);
      broadcast_over(wire, std::as_writable_bytes(std::span(data)), root);
      EXPECT_EQ(data, std::vector<int>(1000, 7 + root));
    }
    std::vector<int> all(static_cast<std::size_t>(wire.size()), -1);
    all[static_cast<std::size_t>(wire.rank())] = 10 * wire.rank();
    all_gather_over(wire, std::as_writable_bytes(std::span(all)), "test");
    for (int r = 0; r < wire.size(); ++r) EXPECT_EQ(all[static_cast<std::size_t>(r)], 10 * r);
  });
}

INSTANTIATE_TEST_SUITE_P(Members, RingOf, testing::Values(1, 2, 3, 4, 5, 8));

TEST(SumCheck, AWrongElementIsNamedWithRankAndOffset) {
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    constexpr std::size_t kCount = 5000;
    std::vector<std::byte> sum(kCount * size_of(type));
    fill_for_check(sum.data(), kCount, type, 0);
    EXPECT_EQ(check_sum(sum.data(), kCount, type, 1).wrong, 0U);
    sum[4321 * size_of(type) + size_of(type) - 1] ^= std::byte{0x40};
    const SumCheck check = check_sum(sum.data(), kCount, type, 1);
    EXPECT_EQ(check.wrong, 1U) << to_string(type);
    EXPECT_EQ(check.first_offset, 4321U);
    expect_parts(describe(check, kCount, type, 3), {"rank 3: 1 of 5000 elements", "offset 4321"});
  }
}

TEST(SumCheck, ZerosDoNotPassWhateverTheNumberOfRanks) {
  const std::vector<float> zeros(1000);
  for (int ranks = 1; ranks <= 64; ++ranks) {
    EXPECT_GT(check_sum(zeros.data(), zeros.size(), DType::f32, ranks).wrong, 0U) << ranks;
  }
}

TEST(SumCheck, AShiftedOrUnreducedPieceDoesNotPass) {
  constexpr std::size_t kCount = 4096;
  std::vector<float> data(kCount);
  fill_for_check(data.data(), kCount, DType::f32, 1);
  EXPECT_GT(check_sum(data.data(), kCount, DType::f32, 2).wrong, kCount / 2);
  fill_for_check(data.data(), kCount, DType::f32, 0);
  EXPECT_GT(check_sum(data.data() + 256, kCount - 256, DType::f32, 1).wrong, kCount / 2);
}

}  // namespace
}  // namespace paceline
