#include "observe/audit.hpp"

#include "base/names.hpp"
#include "base/random.hpp"
#include "base/stored_time.hpp"
#include "base/words.hpp"
#include "resp/cursor.hpp"
#include "scripts/all.hpp"

#include <lockstep/error.hpp>
#include <lockstep/log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace lockstep::observe {
namespace {

constexpr std::int64_t kept = 10'000;
constexpr std::int64_t shortened_every = 1'000;  // entries
constexpr std::size_t page = 500;

void append_field(std::string& to, std::string_view field, std::string_view value) {
    to.append(field).append(1, ' ');
    for (char const c : value) {
        if (c == '\n' || c == '%') {
            to += fmt::format("%{:02X}", c);
        } else {
            to += c;
        }
    }
    to += '\n';
}

std::string decoded(std::string_view value) {
    std::string text;
    while (!value.empty()) {
        bool const is_line_end = value.starts_with("%0A");
        if (is_line_end || value.starts_with("%25")) {
            text += is_line_end ? '\n' : '%';
            value.remove_prefix(3);
        } else {
            text += value.front();
            value.remove_prefix(1);
        }
    }
    return text;
}

struct parsed_entry {
    audit_entry entry;
    std::string of, outcome;
};

parsed_entry parse(std::string_view text) {
    parsed_entry made;
    auto& entry = made.entry;
    entry.outcome = "requested";
    while (!text.empty()) {
        auto line = base::cut(text, '\n');
        auto const field = base::cut(line, ' ');
        if (field == "id") entry.id = decoded(line);
        if (field == "action") entry.action = decoded(line);
        if (field == "name") entry.name = decoded(line);
        if (field == "kind") entry.kind = decoded(line);
        if (field == "hold") entry.hold = decoded(line);
        if (field == "owner") entry.owner = decoded(line);
        if (field == "by") entry.by = decoded(line);
        if (field == "reason") entry.reason = decoded(line);
        if (field == "fence") entry.fence = base::number_in<std::uint64_t>(line).value_or(0);
        if (field == "of") made.of = decoded(line);
        if (field == "outcome") made.outcome = decoded(line);
    }
    auto const ms = base::number_in<std::int64_t>(std::string_view{entry.id}.substr(0, entry.id.find('-')));
    entry.at = base::time_of_ms(ms.value_or(0));
    return made;
}

/// Not allowed to `act` users, who may only append: then it stays as long as it is.
task<void> shorten(reader from, std::string key) {
    try {
        auto trimming = from.at(key, {"LTRIM", key, std::to_string(-kept), "-1"});
        co_await std::move(trimming);
    } catch (server_error const&) {
    }
}

}  // namespace

std::string audit_key(std::string_view prefix) {
    base::check_prefix(prefix);
    return std::string{prefix} + "-audit:log";
}

task<std::string> append_audit(reader from, audit_fields fields) {
    auto const key = audit_key(from.prefix());
    auto asking = from.at(key, {"TIME"});
    auto const time = co_await std::move(asking);
    auto const us = base::number_in<std::int64_t>(time[1].text()).value_or(0);
    auto const id = fmt::format("{}{:03}-{}", time[0].text(), us / 1'000, base::random_id());
    std::string text;
    append_field(text, "id", id);
    for (auto const& [field, value] : fields) append_field(text, field, value);
    auto writing = from.at(key, {"RPUSH", key, text});
    auto const length = co_await std::move(writing);
    if (length.integer() > kept && length.integer() % shortened_every == 0) {
        auto shortening = shorten(from, key);
        co_await std::move(shortening);
    }
    co_return id;
}

task<void> append_outcome(reader from, std::string entry, std::string outcome) {
    try {
        audit_fields fields{{"of", std::move(entry)}, {"outcome", outcome}};
        auto writing = append_audit(std::move(from), std::move(fields));
        co_await std::move(writing);
    } catch (error const& problem) {
        log(log_level::warning, fmt::format("an action ended ('{}'), but that could not be noted in the audit log: {}", outcome, problem.what()));
    }
}

task<std::vector<audit_entry>> read_audit(reader from, std::size_t count) {
    auto const key = audit_key(from.prefix());
    auto const wanted = std::min<std::size_t>(count, kept);
    std::map<std::string, std::string, std::less<>> outcomes;  // one stands behind its action, so it is read first
    std::set<std::string, std::less<>> known;                  // what is appended meanwhile moves others to where they are read again
    std::vector<audit_entry> all;
    auto const add = [&](parsed_entry one) {
        if (!one.of.empty()) {
            outcomes.emplace(std::move(one.of), std::move(one.outcome));
        } else if (!one.entry.id.empty() && all.size() < wanted && known.insert(one.entry.id).second) {
            if (auto const found = outcomes.find(one.entry.id); found != outcomes.end()) one.entry.outcome = found->second;
            all.push_back(std::move(one.entry));
        }
    };
    try {
        for (std::size_t seen = 0; seen < 2 * wanted && all.size() < wanted && !from.is_late();) {
            auto asking = from.script(scripts::audit_read, {key}, {std::to_string(seen), std::to_string(std::min(page, 2 * wanted - seen))});
            auto const said = co_await std::move(asking);
            if (said.size() < 2) break;
            seen += said.size() - 1;
            for (resp::cursor rest{said, 1}; rest.left() != 0;) {
                auto const one = rest.next();
                if (one.is_text()) {
                    add(parse(one.text()));
                } else {
                    from.note(key, fmt::format("an entry of {} bytes is not shown", one.integer()));
                }
            }
        }
    } catch (server_error const& problem) {
        from.note_or_throw(key, problem);
    }
    co_return all;
}

}  // namespace lockstep::observe
