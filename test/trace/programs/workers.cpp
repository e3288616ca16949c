// Several threads on one table of rows: each reads rows at random, a row being some pages, and copies records. With
// tests, loops and returns where a hint has no line of its own. workers ROWS LOOKUPS THREADS
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kRowValues = 1536;  // 12 KiB

struct Record {
  Record* next = nullptr;
  std::uint64_t values[96] = {};
};

struct Table {
  std::size_t rows = 0;
  std::vector<std::uint64_t> values;
  std::vector<std::unique_ptr<Record>> records;
};

std::uint64_t next(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

[[gnu::noinline]] std::uint64_t row_sum(const std::uint64_t* values, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

[[gnu::noinline]] std::uint64_t pick(const Record* record, std::uint64_t& state) {
  if (record == nullptr || record->values[0] == 1) return 0;
  return record->values[next(state) % 96];
}

[[gnu::noinline]] void copy(Record* to, const Record* from) {
  std::memcpy(to->values, from->values, sizeof to->values);
}

std::uint64_t work(const Table& table, std::size_t lookups, std::uint64_t state) {
  std::uint64_t sum = 0;
  Record mine;
  for (std::size_t i = 0; i < lookups; ++i) {
    sum += row_sum(&table.values[next(state) % table.rows * kRowValues], kRowValues);
    const Record* record = table.records[next(state) % table.records.size()].get();
    sum += pick(record, state);
    copy(&mine, table.records[next(state) % table.records.size()].get());
    sum += mine.values[i % 96];
  }
  return sum;
}

}  // namespace

int main(int count, char** arguments) {
  Table table;
  table.rows = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1024;
  std::size_t lookups = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 4000;
  int threads = count > 3 ? std::atoi(arguments[3]) : 2;
  table.values.resize(table.rows * kRowValues);
  for (std::size_t i = 0; i < table.values.size(); ++i) table.values[i] = i;
  for (std::size_t i = 0; i < table.rows * 8; ++i) {
    table.records.push_back(std::make_unique<Record>());
    for (std::uint64_t& value : table.records.back()->values) value = i;
  }
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads));
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back(
        [&, i] { sums[static_cast<std::size_t>(i)] = work(table, lookups, static_cast<std::uint64_t>(i) + 1); });
  for (std::thread& each : all) each.join();
  std::uint64_t sum = 0;
  for (std::uint64_t each : sums) sum += each;
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
}
