// What each instruction does (NVIDIA, "Parallel Thread Execution ISA", 9.7).
#include <atomic>
#include <unordered_map>

#include "tests/support/ptx/arithmetic.h"
#include "tests/support/ptx/thread.h"

namespace paceline::ptx {

namespace {

using Thread = PtxThread;
using Instruction = PtxInstruction;
using Table = std::unordered_map<std::string, PtxStep>;

template <typename... T>
struct Types {};
// Names of a type. Bits are unsigned.
template <typename T>
std::vector<std::string> point_names() {
  const std::string width = std::to_string(8 * sizeof(T));
  if constexpr (std::is_floating_point_v<T>) {
    return {".f" + width};
  } else if constexpr (std::is_signed_v<T>) {
    return {".s" + width};
  } else {
    return {".u" + width, ".b" + width};
  }
}
using Unsigned = Types<U16, U32, U64>;
using Integers = Types<U16, U32, U64, S16, S32, S64>;
using Floats = Types<float, double>;
using Loadable = Types<U8, U16, U32, U64, S8, S16, S32, S64, float, double>;

template <typename T, typename Make>
void add_type(Table& table, const std::string& name, Make make) {
  for (const std::string& type : point_names<T>()) table.emplace(name + type, make(T{}));
}
template <typename... T, typename Make>
void add_types(Table& table, const std::string& name, Types<T...>, Make make) {
  (add_type<T>(table, name, make), ...);
}
// Signed names of what wraps around alike for both.
template <typename... T, typename Make>
void add_both_signs(Table& table, const std::string& name, Types<T...> types, Make make) {
  add_types(table, name, types, make);
  (table.emplace(name + ".s" + std::to_string(8 * sizeof(T)), make(T{})), ...);
}

// From the instruction's operands as T to a result of any type.
template <typename T, typename F>
void unary(Thread& t, const Instruction& i) {
  t.set(i.to[0], F{}(t.get<T>(i.from[0])));
}
template <typename T, typename F>
void binary(Thread& t, const Instruction& i) {
  t.set(i.to[0], F{}(t.get<T>(i.from[0]), t.get<T>(i.from[1])));
}
template <typename T, typename F>
void ternary(Thread& t, const Instruction& i) {
  t.set(i.to[0], F{}(t.get<T>(i.from[0]), t.get<T>(i.from[1]), t.get<T>(i.from[2])));
}
template <typename F, typename Among>
void unaries(Table& table, const std::string& name, Among types) {
  add_types(table, name, types, [](auto type) { return &unary<decltype(type), F>; });
}
template <typename F, typename Among>
void binaries(Table& table, const std::string& name, Among types) {
  add_types(table, name, types, [](auto type) { return &binary<decltype(type), F>; });
}

template <typename Wide>
void wide_times_plus(Thread& t, const Instruction& i) {
  using T = std::conditional_t<std::is_signed_v<Wide>, S32, U32>;
  const Wide product = Wide{t.get<T>(i.from[0])} * Wide{t.get<T>(i.from[1])};
  t.set(i.to[0], static_cast<U64>(product) + t.get<U64>(i.from[2]));
}
template <typename T, bool kLeft>
void shift(Thread& t, const Instruction& i) {
  const T value = t.get<T>(i.from[0]);
  const U32 by = t.get<U32>(i.from[1]);
  constexpr U32 kWidth = 8 * sizeof(T);
  if (kLeft) return t.set(i.to[0], static_cast<T>(by >= kWidth ? 0 : U64(value) << by));
  if (by < kWidth) return t.set(i.to[0], static_cast<T>(value >> by));
  t.set(i.to[0], static_cast<T>(std::is_signed_v<T> && value < 0 ? -1 : 0));
}

// The bits of b:a, from bit c: the upper (l) or lower (r) word of them.
template <bool kLeft>
void funnel(Thread& t, const Instruction& i) {
  const U64 both = U64{t.get<U32>(i.from[1])} << 32 | t.get<U32>(i.from[0]);
  const U32 by = t.get<U32>(i.from[2]) & 31;
  t.set(i.to[0], static_cast<U32>(kLeft ? both << by >> 32 : both >> by));
}

// Of any function of three bits, by its table.
void lop3(Thread& t, const Instruction& i) {
  const U32 a = t.get<U32>(i.from[0]), b = t.get<U32>(i.from[1]), c = t.get<U32>(i.from[2]);
  const U32 function = t.get<U32>(i.from[3]);
  U32 result = 0;
  for (U32 k = 0; k < 8; ++k) {
    if (function >> k & 1) result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  }
  t.set(i.to[0], result);
}

void permute_bytes(Thread& t, const Instruction& i) {
  const U64 both = U64{t.get<U32>(i.from[1])} << 32 | t.get<U32>(i.from[0]);
  const U32 selector = t.get<U32>(i.from[2]);
  U32 result = 0;
  for (U32 k = 0; k < 4; ++k) {
    const U32 choice = selector >> 4 * k;
    U32 byte = both >> (choice & 7) * 8 & 0xFF;
    if (choice & 8) byte = byte & 0x80 ? 0xFF : 0;
    result |= byte << 8 * k;
  }
  t.set(i.to[0], result);
}

template <typename T>
T make_mask(U32 length) {
  return length >= 8 * sizeof(T) ? static_cast<T>(-1) : static_cast<T>((T{1} << length) - 1);
}
template <typename T>
void insert_bits(Thread& t, const Instruction& i) {
  const U32 at = t.get<U32>(i.from[2]) & 0xFF, length = t.get<U32>(i.from[3]) & 0xFF;
  const T into = t.get<T>(i.from[1]);
  if (at >= 8 * sizeof(T)) return t.set(i.to[0], into);
  const T mask = static_cast<T>(make_mask<T>(length) << at);
  t.set(i.to[0], static_cast<T>((into & ~mask) | (t.get<T>(i.from[0]) << at & mask)));
}
template <typename T>
void extract_bits(Thread& t, const Instruction& i) {
  const U32 at = t.get<U32>(i.from[1]) & 0xFF, length = t.get<U32>(i.from[2]) & 0xFF;
  const T value = at >= 8 * sizeof(T) ? T{0} : static_cast<T>(t.get<T>(i.from[0]) >> at);
  t.set(i.to[0], static_cast<T>(value & make_mask<T>(length)));
}

void move(Thread& t, const Instruction& i) {
  t.slots[i.to[0]] = t.slots[i.from[0]];
}
// Between a register and its parts, lowest first.
template <typename T>
void move_parts(Thread& t, const Instruction& i) {
  const U32 width = 8 * sizeof(T) / (i.parts < 2 ? 1 : i.parts);
  if (i.to[1] != 0) {
    for (U32 k = 0; k < i.parts; ++k) {
      t.slots[i.to[k]] = t.get<T>(i.from[0]) >> width * k & make_mask<U64>(width);
    }
  } else {
    U64 whole = 0;
    for (U32 k = 0; k < i.parts; ++k) {
      whole |= (t.slots[i.from[k]] & make_mask<U64>(width)) << width * k;
    }
    t.set(i.to[0], static_cast<T>(whole));
  }
}
void select(Thread& t, const Instruction& i) {
  t.slots[i.to[0]] = t.slots[i.from[t.slots[i.from[2]] != 0 ? 0 : 1]];
}

enum class How { eq, ne, lt, le, gt, ge, num, nan };
// `kOtherwise`: the answer where one is NaN.
template <How kHow, bool kOtherwise>
struct Compare {
  template <typename T>
  U8 operator()(T a, T b) const {
    const bool ordered = !(a != a) && !(b != b);
    if (kHow == How::num) return ordered;
    if (kHow == How::nan) return !ordered;
    if (!ordered) return kOtherwise;
    return kHow == How::eq   ? a == b
           : kHow == How::ne ? a != b
           : kHow == How::lt ? a < b
           : kHow == How::le ? a <= b
           : kHow == How::gt ? a > b
                             : a >= b;
  }
};
template <How kHow>
void comparisons(Table& table, const std::string& name, const std::string& of_unsigned) {
  binaries<Compare<kHow, false>>(table, "setp." + name, Integers{});
  if (!of_unsigned.empty()) {
    binaries<Compare<kHow, false>>(table, "setp." + of_unsigned, Unsigned{});
  }
  binaries<Compare<kHow, false>>(table, "setp." + name, Floats{});
  binaries<Compare<kHow, true>>(table, "setp." + name + "u", Floats{});
}

template <typename To, typename From>
void convert(Thread& t, const Instruction& i) {
  t.set(i.to[0], static_cast<To>(t.get<From>(i.from[0])));
}
template <typename From, typename... To>
void conversions_from(Table& table, Types<To...>) {
  const auto one = [&](auto to) {
    using T = decltype(to);
    if (std::is_integral_v<T> && std::is_floating_point_v<From>) return;
    table.emplace("cvt" + point_names<T>()[0] + point_names<From>()[0], &convert<T, From>);
  };
  (one(To{}), ...);
}
template <typename... From>
void conversions(Table& table, Types<From...> types) {
  (conversions_from<From>(table, types), ...);
}

enum class Space { global, shared, parameter, local };
template <Space kSpace>
void* place(Thread& t, const Instruction& i, std::size_t bytes, PtxMemory::Access access) {
  const U64 at = t.slots[i.from[0]] + static_cast<U64>(S64{i.offset});
  if (kSpace == Space::global) return t.memory->global(t, i, at, bytes, access);
  if (kSpace == Space::shared) return t.memory->shared(t, i, at, bytes, access);
  if (kSpace == Space::parameter) return t.memory->parameter(t, i, at, bytes);
  return t.memory->local(t, i, at, bytes);
}
template <Space kSpace, typename T>
void load(Thread& t, const Instruction& i) {
  const void* from = place<kSpace>(t, i, i.parts * sizeof(T), PtxMemory::Access::read);
  T values[4];
  std::memcpy(values, from, i.parts * sizeof(T));
  for (U32 k = 0; k < i.parts; ++k) t.set(i.to[k], values[k]);
}
template <Space kSpace, typename T>
void store(Thread& t, const Instruction& i) {
  void* to = place<kSpace>(t, i, i.parts * sizeof(T), PtxMemory::Access::write);
  T values[4];
  for (U32 k = 0; k < i.parts; ++k) values[k] = t.get<T>(i.from[k + 1]);
  std::memcpy(to, values, i.parts * sizeof(T));
}
template <Space kSpace>
void accesses(Table& table, const std::string& space) {
  for (const char* vector : {"", ".v2", ".v4"}) {
    add_types(table, "ld." + space + vector, Loadable{},
              [](auto type) { return &load<kSpace, decltype(type)>; });
    add_types(table, "st." + space + vector, Loadable{},
              [](auto type) { return &store<kSpace, decltype(type)>; });
  }
}
void atomic_add(Thread& t, const Instruction& i) {
  void* at = place<Space::global>(t, i, sizeof(U32), PtxMemory::Access::add);
  t.set(i.to[0], std::atomic_ref<U32>(*static_cast<U32*>(at)).fetch_add(t.get<U32>(i.from[1])));
}

void nothing(Thread&, const Instruction&) {}
void branch(Thread& t, const Instruction& i) {
  t.next = i.target;
}
void wait(Thread& t, const Instruction&) {
  t.stops = true;
}
void leave(Thread& t, const Instruction&) {
  t.done = t.stops = true;
}

Table make_table() {
  Table table;
  const auto both = [&]<typename F>(const std::string& name, F) {
    add_both_signs(table, name, Unsigned{}, [](auto type) { return &binary<decltype(type), F>; });
  };
  both("add", Plus{});
  both("sub", Minus{});
  both("mul.lo", Times{});
  binaries<Plus>(table, "add", Floats{});
  binaries<Minus>(table, "sub", Floats{});
  binaries<Times>(table, "mul", Floats{});
  add_both_signs(table, "mad.lo", Unsigned{},
                 [](auto type) { return &ternary<decltype(type), TimesPlus>; });
  table.emplace("mul.wide.u16", &binary<U16, WideTimes<U32>>);
  table.emplace("mul.wide.s16", &binary<S16, WideTimes<S32>>);
  table.emplace("mul.wide.u32", &binary<U32, WideTimes<U64>>);
  table.emplace("mul.wide.s32", &binary<S32, WideTimes<S64>>);
  table.emplace("mad.wide.u32", &wide_times_plus<U64>);
  table.emplace("mad.wide.s32", &wide_times_plus<S64>);
  table.emplace("mul.hi.u32", &binary<U32, HighTimes<U64>>);
  table.emplace("mul.hi.s32", &binary<S32, HighTimes<S64>>);
  binaries<Divide<false>>(table, "div", Integers{});
  binaries<Divide<true>>(table, "rem", Integers{});
  binaries<Divide<false>>(table, "div", Floats{});
  binaries<Extreme<false>>(table, "min", Integers{});
  binaries<Extreme<true>>(table, "max", Integers{});
  binaries<Extreme<false>>(table, "min", Floats{});
  binaries<Extreme<true>>(table, "max", Floats{});
  binaries<And>(table, "and", Unsigned{});
  binaries<Or>(table, "or", Unsigned{});
  binaries<Xor>(table, "xor", Unsigned{});
  table.emplace("and.pred", &binary<U8, And>);
  table.emplace("or.pred", &binary<U8, Or>);
  table.emplace("xor.pred", &binary<U8, Xor>);
  table.emplace("not.pred", &unary<U8, NotPredicate>);
  unaries<Not>(table, "not", Unsigned{});
  add_both_signs(table, "neg", Unsigned{},
                 [](auto type) { return &unary<decltype(type), Negative>; });
  unaries<Negative>(table, "neg", Floats{});
  unaries<Absolute>(table, "abs", Floats{});
  unaries<Root>(table, "sqrt", Floats{});
  unaries<Inverse>(table, "rcp", Floats{});
  table.emplace("ex2.f32", &unary<float, PowerOfTwo>);
  table.emplace("lg2.f32", &unary<float, LogOfTwo>);
  add_types(table, "fma", Floats{}, [](auto type) { return &ternary<decltype(type), Fused>; });
  table.emplace("fma.rm.f32", &ternary<float, FusedDown>);
  add_types(table, "shl", Unsigned{}, [](auto type) { return &shift<decltype(type), true>; });
  add_types(table, "shr", Integers{}, [](auto type) { return &shift<decltype(type), false>; });
  table.emplace("shf.l.wrap.b32", &funnel<true>);
  table.emplace("shf.r.wrap.b32", &funnel<false>);
  table.emplace("lop3.b32", &lop3);
  table.emplace("prmt.b32", &permute_bytes);
  table.emplace("bfi.b32", &insert_bits<U32>);
  table.emplace("bfi.b64", &insert_bits<U64>);
  table.emplace("bfe.u32", &extract_bits<U32>);
  table.emplace("bfe.u64", &extract_bits<U64>);

  add_types(table, "mov", Integers{}, [](auto) { return &move; });
  add_types(table, "mov", Floats{}, [](auto) { return &move; });
  table.emplace("mov.pred", &move);
  table.emplace("mov.parts.b32", &move_parts<U32>);
  table.emplace("mov.parts.b64", &move_parts<U64>);
  add_types(table, "selp", Integers{}, [](auto) { return &select; });
  add_types(table, "selp", Floats{}, [](auto) { return &select; });
  for (const char* space : {"global", "shared", "local", "param"}) {
    table.emplace(std::string("cvta.") + space + ".u64", &move);
    table.emplace(std::string("cvta.to.") + space + ".u64", &move);
  }
  comparisons<How::eq>(table, "eq", "");
  comparisons<How::ne>(table, "ne", "");
  comparisons<How::lt>(table, "lt", "lo");
  comparisons<How::le>(table, "le", "ls");
  comparisons<How::gt>(table, "gt", "hi");
  comparisons<How::ge>(table, "ge", "hs");
  binaries<Compare<How::num, false>>(table, "setp.num", Floats{});
  binaries<Compare<How::nan, false>>(table, "setp.nan", Floats{});

  conversions(table, Loadable{});
  table.emplace("cvt.f16.f32", &unary<float, ToHalf>);
  table.emplace("cvt.f32.f16", &unary<U16, FromHalf>);
  table.emplace("cvt.bf16.f32", &unary<float, ToBf16>);
  table.emplace("cvt.f16x2.f32", &binary<float, Pair<ToHalf>>);
  table.emplace("cvt.bf16x2.f32", &binary<float, Pair<ToBf16>>);
  table.emplace("cvt.sat.f32.f32", &unary<float, Saturate>);

  accesses<Space::global>(table, "global");
  accesses<Space::shared>(table, "shared");
  accesses<Space::parameter>(table, "param");
  accesses<Space::local>(table, "local");
  table.emplace("atom.global.add.u32", &atomic_add);
  table.emplace("membar.gl", &nothing);
  table.emplace("fence.acq_rel.gpu", &nothing);
  table.emplace("fence.sc.gpu", &nothing);
  table.emplace("bar.sync", &wait);
  table.emplace("barrier.sync", &wait);
  table.emplace("bra", &branch);
  table.emplace("ret", &leave);
  table.emplace("exit", &leave);
  return table;
}

}  // namespace

PtxStep next_step(const std::string& instruction) {
  static const Table kTable = make_table();
  const auto found = kTable.find(instruction);
  return found == kTable.end() ? nullptr : found->second;
}

}  // namespace paceline::ptx
