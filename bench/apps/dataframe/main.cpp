// dataframe: nine questions about taxi trips, asked of a small library of columns. (AIFM 8.1.2, Eden 5.3.1)
#include <bit>

#include "common/app.hpp"
#include "common/random.hpp"
#include "dataframe/queries.hpp"
#include "dataframe/trips.hpp"

namespace {

using namespace dataframe;

// A row, and what the copies of a selection of nearly all rows take beside it: the most there is at a time.
constexpr std::size_t kBytesPerRow = 2 * (kRowBytes + sizeof(Time)) + sizeof(std::uint32_t);

std::uint64_t check_of(const std::vector<Answer>& answers) {
  std::uint64_t all = 0;
  for (const Answer& answer : answers) {
    all = apps::mixed(all ^ answer.numbers.size());
    for (double number : answer.numbers) all = apps::mixed(all ^ std::bit_cast<std::uint64_t>(number));
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  apps::App app("dataframe", "Asks nine questions about taxi trips");
  app.offer_fibers();
  std::string csv;
  bool print = false;
  app.options().text("--csv", csv,
                     "trips out of this file, yellow_tripdata of January to June 2016; else they are made up");
  app.options().flag("--answers", print, "print the answers as well");
  return app.run(argc, argv, [&](const apps::Settings& settings) {
    Crew crew(settings);
    Table trips =
        csv.empty() ? made_up_trips(crew, settings.size_bytes / kBytesPerRow, settings.seed) : trips_of_csv(csv);
    std::vector<Answer> answers;
    app.measure([&] { answers = ask_all(crew, trips); });
    if (settings.verify) verify(trips, answers);
    apps::Json seconds, numbers;
    for (const Answer& answer : answers) {
      seconds[answer.question] = answer.seconds;
      numbers[answer.question] = answer.numbers;
    }
    apps::Outcome outcome{.footprint_bytes = trips.rows() * kBytesPerRow,
                          .operations = trips.rows() * answers.size(),
                          .check = check_of(answers),
                          .figures = {{"rows", trips.rows()}, {"query_seconds", seconds}}};
    if (print) outcome.figures["answers"] = numbers;
    return outcome;
  });
}
