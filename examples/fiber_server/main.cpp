// A counter of lines behind a TCP port, each connection a fiber. Its table may be far: the hint parks the one fiber
// that needs the page, and the others go on.
//
//   build/examples/fiber_server 9000                                          printf 'a\nb\na\n' | nc -N 127.0.0.1
//   9000 build/bin/hinterland run --local 16M -- build/examples/fiber_server 9000
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <hinterland/fiber.hpp>
#include <hinterland/hint.hpp>
#include <string>
#include <vector>

int main(int count, char** arguments) {
  using namespace hl::fibers;
  std::vector<std::atomic<unsigned>> counts(std::size_t{16} << 20);  // 64 MiB, by the line's hash
  auto serve = [&](stream_socket peer) {
    std::string line, answer;
    char buffer[4096];
    for (std::ptrdiff_t got; (got = peer.read(buffer, sizeof buffer)) > 0; answer.clear()) {
      for (std::ptrdiff_t i = 0; i < got; ++i) {
        if (buffer[i] != '\n' && (line += buffer[i], true)) continue;
        std::atomic<unsigned>& seen = counts[std::hash<std::string>{}(line) % counts.size()];
        hl::write(&seen);  // the next line changes it
        answer += std::to_string(++seen) + ' ' + line + '\n';
        line.clear();
      }
      if (peer.write_all(answer.data(), answer.size()) < 0) return;
    }
  };
  auto port = static_cast<std::uint16_t>(count > 1 ? std::atoi(arguments[1]) : 0);
  run([&] {
    stream_socket listener = stream_socket::listen("127.0.0.1", port);
    std::printf("port %d\n", listener.port());
    std::fflush(stdout);
    while (stream_socket peer = listener.accept())
      fiber([&serve, peer = std::move(peer)]() mutable { serve(std::move(peer)); }, {.name = "connection"}).detach();
  });
}
