// What the two hot paths pay to the protocol: a SEND_MESSAGE_V2 request in, its answer and a pull answer out.
#include <benchmark/benchmark.h>

#include <string>

#include "base/check.h"
#include "proto/command_table.h"
#include "proto/message_id.h"
#include "proto/record.h"

namespace rmq::proto {

static std::string send_frame(SerializeType type, size_t body_bytes) {
  std::string out;
  SendMessageV2::append_request(
      out, 12'345,
      {.producer_group = "benchmark_producer",
       .topic = "BenchmarkTest",
       .default_topic = "TBW102",
       .default_topic_queue_nums = 4,
       .queue_id = 3,
       .born_timestamp = 1'700'000'000'000,
       .properties =
           "UNIQ_KEY\x01"
           "7F0000010B4C18B4AAC200000001AABB\x02WAIT\x01true\x02KEYS\x01order-4711\x02TAGS\x01TagA\x02",
       .max_reconsume_times = 16,
       .bname = "broker-a"},
      std::string(body_bytes, 'x'), 0, type);
  return out;
}

static void decode_send(benchmark::State& state) {
  auto type = static_cast<SerializeType>(state.range(0));
  std::string bytes = send_frame(type, 1024);
  FrameParser parser;
  RemotingCommand command;
  for (auto _ : state) {
    Bytes rest = as_bytes(bytes);
    auto frame = parser.next(rest);
    check(frame && *frame);
    check(decode_command(*frame, &command).has_value());
    auto header = SendMessageV2::decode(command);
    check(header.has_value());
    benchmark::DoNotOptimize(header->topic.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decode_send)->Arg(0)->Arg(1)->ArgName("binary");

static void frame_only(benchmark::State& state) {
  std::string bytes = send_frame(SerializeType::json, 1024);
  FrameParser parser;
  for (auto _ : state) {
    Bytes rest = as_bytes(bytes);
    auto frame = parser.next(rest);
    benchmark::DoNotOptimize(frame->header().data());
  }
}
BENCHMARK(frame_only);

static void encode_send_answer(benchmark::State& state) {
  RemotingCommand request;
  request.opaque = 12'345;
  request.serialize_type = static_cast<SerializeType>(state.range(0));
  Host host = *Host::parse("127.0.0.1:10911");
  std::string out;
  for (auto _ : state) {
    out.clear();
    char id[offset_id_text_v6];
    size_t n = format_offset_id(host, 123'456'789, id);
    SendMessageV2::append_answer(out, request, ResponseCode::SUCCESS,
                                 {.msg_id = {id, n},
                                  .queue_id = 3,
                                  .queue_offset = 1'234'567,
                                  .transaction_id = "7F0000010B4C18B4AAC200000001AABB",
                                  .msg_region = "DefaultRegion",
                                  .trace_on = "true"});
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(encode_send_answer)->Arg(0)->Arg(1)->ArgName("binary");

static void encode_pull_answer(benchmark::State& state) {
  RemotingCommand request;
  request.opaque = 12'345;
  std::string out;
  for (auto _ : state) {
    out.clear();
    PullMessage::append_answer_head(out, request, ResponseCode::SUCCESS,
                                    {.next_begin_offset = 1'234'567, .max_offset = 2'345'678}, "FOUND",
                                    40'000);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(encode_pull_answer);

static void encode_record_1k(benchmark::State& state) {
  std::string body(1024, 'x'), room(2048, '\0');
  RecordFields f;
  f.topic = "BenchmarkTest";
  f.body = as_bytes(body);
  f.properties =
      "UNIQ_KEY\x01"
      "7F0000010B4C18B4AAC200000001AABB\x02WAIT\x01true\x02TAGS\x01TagA\x02";
  for (auto _ : state) {
    encode_record(f, {reinterpret_cast<std::byte*>(room.data()), room.size()});
    benchmark::DoNotOptimize(room.data());
  }
}
BENCHMARK(encode_record_1k);

}  // namespace rmq::proto

BENCHMARK_MAIN();
