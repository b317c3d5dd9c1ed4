// The stream parser: the first byte says into which pieces the rest is cut. Whatever the pieces, the frames
// and the error must be those of the stream in one piece.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "proto/command.h"

using namespace rmq;
using namespace rmq::proto;

// A line for each frame, and the error.
static std::string parsed(Bytes stream, size_t piece) {
  FrameParser parser;
  std::string out;
  while (!stream.empty()) {
    Bytes rest = stream.first(std::min(piece, stream.size()));
    stream = stream.subspan(rest.size());
    for (;;) {
      auto f = parser.next(rest);
      if (!f) return out + f.error().where;
      if (!*f) break;
      RemotingCommand c;
      std::string body(f->body_text());
      bool ok = decode_command(*f, &c).has_value();
      out += std::to_string(f->bytes()) + (ok ? " code " + std::to_string(c.code) : std::string(" bad")) +
             body + "\n";
    }
    check(rest.empty());
  }
  return out;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Bytes stream(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  check(parsed(stream, data[0] % 37 + 1) == parsed(stream, stream.size() + 1));
  return 0;
}
