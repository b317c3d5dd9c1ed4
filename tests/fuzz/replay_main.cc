// Runs a fuzz target over files, without libFuzzer: every file under the folders given, once as it is and
// then with each prefix and a flipped byte at many places, so that a plain test walks more than the corpus.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// A copy without slack, so that sanitizers see a read behind the end.
static void run(const std::vector<char>& bytes, size_t size) {
  auto exact = std::make_unique<uint8_t[]>(size);
  for (size_t i = 0; i < size; ++i) exact[i] = static_cast<uint8_t>(bytes[i]);
  LLVMFuzzerTestOneInput(exact.get(), size);
}

int main(int argc, char** argv) {
  size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
      run(bytes, bytes.size());
      size_t step = bytes.size() / 256 + 1;
      for (size_t at = 0; at < bytes.size(); at += step) {
        run(bytes, at);
        for (char flip : {'\x01', '\x80', '\xff'}) {
          bytes[at] = static_cast<char>(bytes[at] ^ flip);
          run(bytes, bytes.size());
          bytes[at] = static_cast<char>(bytes[at] ^ flip);
        }
      }
      ++files;
    }
  }
  std::printf("%zu files\n", files);
  return files > 0 ? 0 : 1;
}
