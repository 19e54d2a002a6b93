#include "engine/comm/algorithms/sum.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/error.h"

namespace paceline {
namespace {

std::byte* make_bytes(auto& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

TEST(Sum, PartsAreAddedInTheirOrder) {
  // (1e8 + 3) - 1e8 in fp32 is 0 or 8 as one rounds; in another order it is 3.
  std::vector<float> a(1500, 1e8F), b(1500, 3.0F), c(1500, -1e8F);
  const std::array<std::byte*, 3> parts = {make_bytes(a), make_bytes(b), make_bytes(c)};
  sum_parts(parts, 3, 100, 1400, DType::f32);
  const float in_order = (1e8F + 3.0F) - 1e8F;
  EXPECT_EQ(a[100], in_order);
  EXPECT_EQ(b[1399], in_order);
  EXPECT_EQ(c[700], in_order);
  EXPECT_EQ(a[99], 1e8F);
  EXPECT_EQ(c[1400], -1e8F);
}

TEST(Sum, OnlyTheFirstPartIsWrittenWhereThatIsAsked) {
  for (const DType type : {DType::f32, DType::f64}) {
    std::vector<double> a(64, 0), b(64, 0);
    const std::vector<double> before = b;
    const std::array<std::byte*, 2> parts = {make_bytes(a), make_bytes(b)};
    sum_parts(parts, 1, 0, 64, type);
    EXPECT_EQ(b, before);
  }
  std::vector<float> a(64, 1), b(64, 2);
  const std::array<std::byte*, 2> parts = {make_bytes(a), make_bytes(b)};
  sum_parts(parts, 1, 0, 64, DType::f32);
  EXPECT_EQ(a, std::vector<float>(64, 3));
  EXPECT_EQ(b, std::vector<float>(64, 2));
}

// 256 + 1 + 1 in bf16: added in bf16 each 1 is lost to rounding, in fp32 they count.
TEST(Sum, SixteenBitsAreAddedInFp32AndRoundedOnce) {
  const std::vector<float> values = {256, 1, 1};
  std::vector<std::array<std::uint16_t, 40>> parts(3);
  std::vector<std::byte*> pointers;
  for (std::size_t r = 0; r < 3; ++r) {
    const std::vector<float> wide(40, values[r]);
    to_bf16(wide.data(), parts[r].data(), 40);
    pointers.push_back(make_bytes(parts[r]));
  }
  sum_parts(pointers, 3, 0, 40, DType::bf16);
  std::array<float, 40> sum{};
  for (const auto& part : parts) {
    from_bf16(part.data(), sum.data(), 40);
    EXPECT_EQ(sum[0], 258);
    EXPECT_EQ(sum[39], 258);
  }
}

TEST(Sum, AddToLeavesTheOtherAlone) {
  std::vector<float> to(77, 1), from(77, 2);
  add_to(make_bytes(to), make_bytes(from), 77, DType::f32);
  EXPECT_EQ(to, std::vector<float>(77, 3));
  EXPECT_EQ(from, std::vector<float>(77, 2));
  std::vector<std::uint16_t> half(77, 0x3c00), one(77, 0x3c00);  // 1.0 in binary16
  add_to(make_bytes(half), make_bytes(one), 77, DType::f16);
  EXPECT_EQ(half, std::vector<std::uint16_t>(77, 0x4000));
  EXPECT_EQ(one, std::vector<std::uint16_t>(77, 0x3c00));
}

TEST(Sum, WholeNumbersAreNoGradients) {
  EXPECT_THROW(check_summable(DType::u8), Error);
  std::vector<int> data(4);
  const std::array<std::byte*, 1> parts = {make_bytes(data)};
  EXPECT_THROW(sum_parts(parts, 1, 0, 4, DType::i32), Error);
}

}  // namespace
}  // namespace paceline
