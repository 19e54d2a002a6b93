// Bytes from an untrusted connection, in two pieces whose border the first byte chooses. What is
// understood must come out as the bytes that went in, and the server's mind must survive it. Where
// the proof is "right", it is made right.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/comm/rendezvous/server.h"
#include "engine/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t border = bytes.empty() ? 0 : data[0] % bytes.size();
  paceline::MessageParser parser(paceline::kLargestValue);
  paceline::StoreState state("token", "here:1", 4);
  std::vector<paceline::StoreState::Answer> answers;
  std::string again;
  std::optional<paceline::Message> hello;
  double now = 0;
  try {
    for (const std::string_view piece : {bytes.substr(0, border), bytes.substr(border)}) {
      parser.feed(piece);
      while (auto message = parser.next()) {
        again += encode(*message);
        if (bytes.substr(0, again.size()) != again) std::abort();
        if (message->value == "right" && hello && !answers.empty()) {
          message->value = make_proof("token", paceline::ProofSide::rank, "here:1", *hello,
                                      answers.front().message.key);
        }
        if (!hello) hello = message;
        state.receive(0, *message, now += 0.3, answers);
      }
    }
    state.end(0, answers);
    state.tick(now + 2, answers);
    if (state.next_tick()) std::abort();
  } catch (const paceline::Error&) {
  }
  return 0;
}
