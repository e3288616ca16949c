// Connection: what is computed on a client's pages, and pages that are made of others. A worker checks and holds what
// a request names, and gives the job to the thread that computes.
#include <algorithm>
#include <cstring>

#include "server/connection.hpp"

namespace hinterland {

using far::FarPage;
using far::wire::Code;
using far::wire::Fault;
using far::wire::Header;
using far::wire::list_of;
using far::wire::PageNumber;
using far::wire::Patched;
using far::wire::Piece;
using far::wire::Place;

// A message that has no place in the protocol ends the connection; one that makes no sense is only refused.
bool Connection::on_compute(const Header& request, std::span<const std::byte> body) {
  far::wire::ComputeRequest wanted;
  std::memcpy(&wanted, body.data(), sizeof wanted);
  auto pieces = list_of<Piece>(body.subspan(sizeof wanted));
  if (!state_.options.compute || wanted.reserved != 0 || check_pieces(pieces) != Fault::none) return false;
  auto job = std::make_shared<ComputeJob>();
  job->what = {static_cast<std::uint16_t>(request.slab), wanted.element, wanted.relation, wanted.shift,
               wanted.operand};
  job->result_bytes = far::wire::compute_reply_bytes(request.slab, request.count);
  compute_request_ = request;
  compute_request_.stamp = echo_of(pieces);
  const Code code = prepare_computation(*job, pieces);
  begin(std::move(job), code, state_.computer);
  return true;
}

Code Connection::prepare_computation(ComputeJob& job, std::span<const Piece> pieces) {
  if (!hl::far::detail::is_valid(job.what)) return Code::bad_request;
  const std::size_t element = hl::far::detail::element_bytes(job.what.element);
  const bool one = job.what.operation == hl::far::detail::pick;
  for (const Piece& piece : pieces)
    if (piece.offset % element != 0 || piece.bytes % element != 0 || (one && piece.bytes != element))
      return Code::bad_request;
  return hold_pieces(job, pieces);
}

bool Connection::on_find_operator(const Header& request, std::span<const std::byte> body) {
  if (state_.operators == nullptr) return false;
  far::wire::OperatorRequest wanted;
  std::memcpy(&wanted, body.data(), sizeof wanted);
  const auto number = state_.operators->find(
      {wanted.name, wanted.version, wanted.element_bytes, wanted.argument_bytes, wanted.result_bytes});
  Header header = make_reply(request, number ? Code::ok : Code::no_operator);
  if (number) header.slab = far::wire::operator_field(*number, wanted.result_bytes);
  reply(header);
  return true;
}

bool Connection::on_apply(const Header& request, std::span<const std::byte> body) {
  auto job = std::make_shared<ComputeJob>();
  static_assert(sizeof job->argument == sizeof(far::wire::ApplyRequest));
  std::memcpy(job->argument.data(), body.data(), sizeof job->argument);
  body = body.subspan(sizeof job->argument);
  auto pieces = list_of<Piece>(body.first(request.count * sizeof(Piece)));
  auto words = list_of<far::wire::Word>(body.subspan(pieces.size_bytes()));
  if (state_.operators == nullptr || check_pieces(pieces) != Fault::none) return false;
  job->operators = state_.operators.get();
  job->number = far::wire::operator_number(request.slab);
  job->result_bytes = far::wire::applied_result_bytes(request.slab) * request.count;
  compute_request_ = request;
  compute_request_.stamp = echo_of(pieces);
  const Code code = prepare_application(*job, request.slab, pieces, words);
  begin(std::move(job), code, state_.operator_computer);
  return true;
}

Code Connection::prepare_application(ComputeJob& job, std::uint32_t field, std::span<const Piece> pieces,
                                     std::span<const far::wire::Word> words) {
  const hl_operator* which = state_.operators->get(job.number);
  if (which == nullptr) return Code::no_operator;
  if (which->result_bytes != far::wire::applied_result_bytes(field)) return Code::bad_request;
  for (const Piece& piece : pieces)
    if (piece.bytes % which->element_bytes != 0) return Code::bad_request;
  const Code code = hold_pieces(job, pieces);
  for (std::size_t i = 0; i < job.pieces.size(); ++i) job.pieces[i].word = words[i];
  return code;
}

bool Connection::on_compose(const Header& request, std::span<const std::byte> body) {
  const std::uint32_t count = far::wire::composed_pages(request.slab);
  auto pages = list_of<PageNumber>(body.first(count * sizeof(PageNumber)));
  auto pieces = list_of<Piece>(body.subspan(pages.size_bytes(), request.count * sizeof(Piece)));
  auto masks = body.subspan(pages.size_bytes() + pieces.size_bytes());
  if (!state_.options.compute || check_pages(pages) != Fault::none || check_pieces(pieces) != Fault::none)
    return false;
  auto job = std::make_shared<ComputeJob>();
  job->composition.element_bytes = far::wire::composed_element_bytes(request.slab);
  job->composition.masks.assign(masks.begin(), masks.end());
  job->composition.stamp = request.stamp;
  job->result_bytes = count * static_cast<std::uint32_t>(sizeof(std::uint64_t));
  compute_request_ = request;
  compute_request_.stamp = echo_of(pages, pieces);
  const Code code = prepare_composition(*job, pages, pieces);
  begin(std::move(job), code, state_.computer);
  return true;
}

// All that can be said against it before it is begun: what is chosen is not as much as the pages hold, a page is not
// this session's, one is to be written and read, or written twice.
Code Connection::prepare_composition(ComputeJob& job, std::span<const PageNumber> pages,
                                     std::span<const Piece> pieces) {
  const std::uint32_t element = job.composition.element_bytes, mask_bytes = far::wire::mask_bytes(element);
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto mask = std::span(job.composition.masks).subspan(i * mask_bytes, mask_bytes);
    const auto bytes = far::wire::chosen_bytes(pieces[i], element, mask);
    if (!bytes) return Code::bad_request;
    chosen += *bytes;
  }
  if (chosen != bytes_of_pages(pages.size())) return Code::bad_request;
  const Code code = hold_targets(job, pages, pieces);
  return code == Code::ok ? hold_pieces(job, pieces) : code;
}

// The pages that are to be written: each once, and none that is read.
Code Connection::hold_targets(ComputeJob& job, std::span<const PageNumber> pages, std::span<const Piece> sources) {
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const bool again = std::find(pages.begin(), pages.begin() + static_cast<std::ptrdiff_t>(i), pages[i]) !=
                       pages.begin() + static_cast<std::ptrdiff_t>(i);
    if (again || std::ranges::any_of(sources, [&](const Piece& piece) { return piece.page == pages[i]; }))
      return Code::bad_request;
    HeldPage page = session_->hold(FarPage{pages[i]});
    if (!page) return Code::not_yours;
    job.composition.pages.push_back(std::move(page));
  }
  return Code::ok;
}

bool Connection::on_patch(const Header& request, std::span<const std::byte> body) {
  const std::uint32_t count = far::wire::composed_pages(request.slab);
  auto pages = list_of<Patched>(body.first(count * sizeof(Patched)));
  auto places = list_of<Place>(body.subspan(pages.size_bytes(), request.count * sizeof(Place)));
  auto elements = body.subspan(pages.size_bytes() + places.size_bytes());
  if (!state_.options.compute || check_patched(pages) != Fault::none) return false;
  auto job = std::make_shared<ComputeJob>();
  job->composition.element_bytes = far::wire::composed_element_bytes(request.slab);
  job->composition.places.assign(places.begin(), places.end());
  job->composition.elements.assign(elements.begin(), elements.end());
  job->composition.stamp = request.stamp;
  job->result_bytes = count * static_cast<std::uint32_t>(sizeof(std::uint64_t));
  compute_request_ = request;
  compute_request_.stamp = echo_of(pages);
  const Code code = prepare_patching(*job, pages);
  begin(std::move(job), code, state_.computer);
  return true;
}

Code Connection::prepare_patching(ComputeJob& job, std::span<const Patched> pages) {
  const std::size_t on_page = kPageSize / job.composition.element_bytes;
  for (const Place place : job.composition.places)
    if (place_page(place) >= pages.size() || place_element(place) >= on_page) return Code::bad_request;
  std::vector<PageNumber> targets;
  std::vector<Piece> sources;
  for (const Patched& each : pages) {
    const bool fills = each.from == far::wire::kNoPage;
    job.composition.fills.push_back(fills ? std::optional<std::uint64_t>(each.word) : std::nullopt);
    targets.push_back(each.page);
    if (!fills)
      sources.push_back({each.from, each.word, std::uint16_t{0}, static_cast<std::uint16_t>(kPageSize), 0u});
  }
  const Code code = hold_targets(job, targets, sources);
  return code == Code::ok ? hold_pieces(job, sources) : code;
}

Code Connection::hold_pieces(ComputeJob& job, std::span<const Piece> pieces) {
  job.pieces.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    HeldPage page = session_->hold(FarPage{piece.page});
    if (!page) return Code::not_yours;
    job.pieces.push_back({std::move(page), piece.checksum, piece.offset, piece.bytes});
  }
  return Code::ok;
}

// Or refuses it.
void Connection::begin(std::shared_ptr<ComputeJob> job, Code code, Computer& computer) {
  if (code != Code::ok) {
    Header refusal = make_reply(compute_request_, code);
    refusal.stamp = compute_request_.stamp;
    reply(refusal);
    return;
  }
  job->results = std::make_unique_for_overwrite<std::byte[]>(job->result_bytes);
  job->event = event_;
  job_ = job;
  add(state_.pages_computed, job->pieces.size());
  computer.take(std::move(job));
}

// False while the job is not done. Then its reply is queued.
bool Connection::take_results() {
  if (!job_->done()) return false;
  Header header = make_reply(compute_request_, job_->code);
  header.stamp = compute_request_.stamp;
  reply(header);
  results_ = std::move(job_);
  if (results_->code != Code::ok) return true;
  add(state_.pages_written, results_->composition.pages.size());
  results_->store();
  parts_.push_back({results_->results.get(), results_->result_bytes});
  return true;
}

}  // namespace hinterland
