// What runs PTX: results of instructions, and a planted fault of each kind that it reports.
#include "tests/support/ptx/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "tests/support/expect_error.h"

namespace paceline::ptx {
namespace {

struct Parameters {
  std::uint64_t data;
  std::uint32_t a, b;
};

// A kernel of this body, whose parameters are in %data, %a and %b.
std::string entry(const std::string& body) {
  return R"(
.version 9.0
.target sm_90
.extern .shared .align 16 .b8 memory[];
.entry planted(
	.param .align 8 .b8 planted_param_0[16]
)
{
	.reg .b64 %rd<9>;
	ld.param.u64 	%data, [planted_param_0];
	ld.param.v2.u32 	{%a, %b}, [planted_param_0+8];
	cvta.to.global.u64 	%data, %data;
	mov.u32 	%tid, %tid.x; // of the block
	mul.wide.u32 	%mine, %tid, 4;
	add.s64 	%mine, %mine, %data;
	shl.b32 	%place, %tid, 2;
)" + body +
         "\n}\n";
}

class Machine : public testing::Test {
 protected:
  PtxOutcome run(const std::string& body, unsigned blocks = 1, unsigned threads = 4,
                 std::size_t shared = 64) {
    const PtxModule module(entry(body));
    const PtxKernel* kernel = module.find("planted");
    const Parameters parameters{reinterpret_cast<std::uintptr_t>(data.data()), a, b};
    const LiveMemory live{reinterpret_cast<std::uintptr_t>(data.data()),
                          data.size() * sizeof(data[0])};
    return run_ptx(module, *kernel, {blocks, threads, shared, &parameters, sizeof parameters},
                   {&live, 1}, order);
  }
  void finds(const std::string& body, const std::string& what) {
    const PtxOutcome outcome = run(body);
    ASSERT_FALSE(outcome.faults.empty()) << what;
    const auto say = [&](const std::string& part) {
      return std::count_if(
          outcome.faults.begin(), outcome.faults.end(),
          [&](const std::string& fault) { return fault.find(part) != std::string::npos; });
    };
    EXPECT_GE(say(what), 1) << what << " in " << outcome.faults.front();
    EXPECT_EQ(say("planted, line "), static_cast<std::ptrdiff_t>(outcome.faults.size()));
  }
  // The bits of d where a and b are these.
  std::uint32_t result(const std::string& instruction, std::uint32_t of_a, std::uint32_t of_b = 0) {
    a = of_a;
    b = of_b;
    const PtxOutcome outcome = run(instruction + ";\nst.global.u32 [%data], %d;", 1, 1);
    EXPECT_EQ(outcome.faults, std::vector<std::string>{}) << instruction;
    return data[0];
  }

  std::vector<std::uint32_t> data = std::vector<std::uint32_t>(8);
  std::uint32_t a = 0, b = 0;
  std::mt19937 order{1};
};

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

TEST_F(Machine, ComputesAsACardDoes) {
  EXPECT_EQ(result("add.s32 %d, %a, %b", 0xFFFFFFFF, 2), 1U);
  EXPECT_EQ(result("mul.lo.s32 %d, %a, -3", 5), static_cast<std::uint32_t>(-15));
  EXPECT_EQ(result("mul.hi.u32 %d, %a, %b", 0x80000000, 6), 3U);
  EXPECT_EQ(result("mad.lo.s32 %d, %a, %b, 1", 7, 6), 43U);
  EXPECT_EQ(result("div.s32 %d, %a, 2", static_cast<std::uint32_t>(-7)),
            static_cast<std::uint32_t>(-3));
  EXPECT_EQ(result("rem.u32 %d, %a, %b", 17, 5), 2U);
  EXPECT_EQ(result("shr.s32 %d, %a, 40", 0x80000000), 0xFFFFFFFF);
  EXPECT_EQ(result("shl.b32 %d, %a, %b", 1, 32), 0U);
  EXPECT_EQ(result("shr.u32 %d, %a, 31", 0x80000000), 1U);
  EXPECT_EQ(result("prmt.b32 %d, %a, %b, 30212", 0x44332211, 0x88776655), 0x88771155U);
  EXPECT_EQ(result("lop3.b32 %d, %a, %b, 0, 0xC0", 0b1100, 0b1010), 0b1000U);
  EXPECT_EQ(result("shf.l.wrap.b32 %d, %a, %b, 8", 0xAB000000, 1), 0x1ABU);
  EXPECT_EQ(result("bfi.b32 %d, %a, %b, 4, 8", 0xFF, 0), 0xFF0U);
  EXPECT_EQ(result("max.s32 %d, %a, %b", static_cast<std::uint32_t>(-1), 1), 1U);
  EXPECT_EQ(result("setp.lt.s32 %p, %a, %b; selp.u32 %d, 5, 6, %p", 0xFFFFFFFF, 0), 5U);
  EXPECT_EQ(result("setp.lt.u32 %p, %a, %b; selp.u32 %d, 5, 6, %p", 0xFFFFFFFF, 0), 6U);
  EXPECT_EQ(result("setp.leu.f32 %p, %a, %b; selp.u32 %d, 5, 6, %p", bits(NAN), 0), 5U);
  EXPECT_EQ(result("setp.le.f32 %p, %a, %b; selp.u32 %d, 5, 6, %p", bits(NAN), 0), 6U);
  EXPECT_EQ(result("mov.b32 {%l, %h}, %a; mov.b32 %d, {%h, %l}", 0x12345678), 0x56781234U);
  EXPECT_EQ(result("cvt.rn.bf16.f32 %h, %a; cvt.u32.u16 %d, %h", bits(1.01F)), 0x3F81U);
  EXPECT_EQ(result("cvt.rn.bf16x2.f32 %d, %a, %b", bits(1), bits(-2)), 0x3F80C000U);
  EXPECT_EQ(result("cvt.rn.f16.f32 %h, %a; cvt.f32.f16 %d, %h", bits(65520)), bits(INFINITY));
  EXPECT_EQ(result("cvt.s64.s32 %w, %a; shr.u64 %w, %w, 32; cvt.u32.u64 %d, %w", 0x80000000),
            0xFFFFFFFFU);
  EXPECT_EQ(result("cvt.f64.f32 %w, %a; mul.f64 %w, %w, 0d4000000000000000; cvt.rn.f32.f64 %d, %w",
                   bits(1.5F)),
            bits(3));
  EXPECT_EQ(result("fma.rn.f32 %d, %a, %b, 0fBF800000", bits(1 + 0x1p-12F), bits(1 - 0x1p-12F)),
            bits(-0x1p-24F));
  EXPECT_EQ(result("fma.rm.f32 %d, %a, %b, 0f3F800000", bits(-0x1p-20F), bits(0x1p-20F)),
            bits(1 - 0x1p-24F));
  EXPECT_EQ(result("setp.eq.s32 %p, %a, 1; mov.u32 %d, 3; @%p mov.u32 %d, 4; @!%p bra $end;"
                   "mov.u32 %d, 5; $end: mov.u32 %d, %d",
                   2),
            3U);
}

TEST_F(Machine, BlocksAndThreadsDoTheirShareInAnyOrder) {
  data.resize(64);
  const std::string add = R"(
	mov.u32 %block, %ctaid.x;
	mov.u32 %threads, %ntid.x;
	mad.lo.s32 %k, %block, %threads, %tid;
	mul.wide.u32 %at, %k, 4;
	add.s64 %at, %at, %data;
	atom.global.add.u32 %order, [%data], 1;
	bar.sync 0;
	st.global.u32 [%at], %order;)";
  std::set<std::vector<std::uint32_t>> orders;
  for (int k = 0; k < 3; ++k) {
    data.assign(64, 0);
    EXPECT_EQ(run(add, 15, 4).faults, std::vector<std::string>{});
    orders.insert(data);
  }
  EXPECT_EQ(orders.size(), 3U);
}

TEST_F(Machine, FindsAccessesOutsideOfLiveMemory) {
  finds("ld.global.u32 %d, [%mine+20];", "reads 4 bytes at offset 32 of a memory of 32 bytes");
  finds("st.global.u32 [%mine+-4], %tid;", "writes 4 bytes at");
  finds("st.global.u32 [0], %tid;", "before all live memory");
  finds("ld.shared.u32 %d, [%place+64];", "at offset 64 of 64 bytes of shared memory");
  finds("ld.param.u32 %d, [planted_param_0+16];", "at offset 16 of 16 bytes of parameters");
}

TEST_F(Machine, FindsMisalignedAccesses) {
  data.resize(32);
  finds("ld.global.u32 %d, [%mine+2];", "which is not aligned to that");
  finds("st.shared.u32 [%place+1], %tid;", "which is not aligned to that");
  // Vectors must lie on their whole size: of four neighbours only one does.
  finds("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%mine];", "reads 16 bytes at");
}

TEST_F(Machine, FindsRacesInSharedMemory) {
  const std::string neighbours = "xor.b32 %other, %place, 4; ld.shared.u32 %d, [%other];";
  finds("st.shared.u32 [%place], %tid;" + neighbours, "between the same barriers");
  EXPECT_EQ(run("st.shared.u32 [%place], %tid; bar.sync 0;" + neighbours).faults,
            std::vector<std::string>{});
  finds("st.shared.u32 [0], %tid;", "between the same barriers");
  finds("st.shared.u32 [%place], %tid; bar.sync 0;" + neighbours + "st.shared.u32 [%place], %tid;",
        "between the same barriers");
}

TEST_F(Machine, FindsReadsOfWhatNobodyWrote) {
  finds("ld.shared.u32 %d, [%place];", "that no thread has written");
}

TEST_F(Machine, FindsBarriersThatNotAllThreadsComeTo) {
  finds("setp.eq.s32 %p, %tid, 2; @%p bra $out; bar.sync 0;\n$out: ret;", "is done");
  finds("setp.eq.s32 %p, %tid, 2; @%p bra $out; bar.sync 0; ret;\n$out: bar.sync 0;",
        "waits at line");
}

TEST_F(Machine, FindsInstructionsItDoesNotKnow) {
  finds("vote.sync.all.pred %p, %q, -1;", "does not know");
}

TEST(Module, ReportsWhereTextIsNotPtx) {
  expect_error(ErrorKind::input, {"line", "in the middle of a kernel"},
               [] { PtxModule(".entry k()\n{ add.s32 %a, %b"); });
  expect_error(ErrorKind::input, {"no label $nowhere"},
               [] { PtxModule(".entry k()\n{ bra $nowhere; }"); });
  EXPECT_EQ(PtxModule("// nothing").kernels().size(), 0U);
}

}  // namespace
}  // namespace paceline::ptx
