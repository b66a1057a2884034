import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateRecords
package import GateVocabulary

/// Counts, day by day, the people who switched a category off within 24 hours of a send of it, and remembers the days
/// that raised a review.
///
/// Kept in the store as a setting, and changed in the transaction that records a switching off: the counts agree with
/// the trail, and a restart loses none.
package struct DisableDays: Hashable, Sendable {
    /// Days before today that the mean is of.
    package static let usualDayCount = 7
    /// Days for which a review is shown, the day it was raised on among them.
    package static let reviewDayCount = 7
    static let settingName = "disable_days"
    /// Bound on the people of a day and category whom the counts remember. One person is counted a second time on a
    /// day only after so many others.
    static let personCountMax = 256

    /// UTC days since 1970.
    package typealias Day = Int64

    struct Counts: Hashable, Sendable {
        var byDay: [Day: Int64] = [:]
        var reviewedOn: Day?
        /// Who was counted on the newest day, newest last.
        var people: [String] = []
    }
    var categories: [Category: Counts] = [:]

    package init() {}

    static func day(_ now: Instant) -> Day {
        now.seconds >= 0 ? now.seconds / 86_400 : (now.seconds - 86_399) / 86_400
    }

    /// A day on which so many more people than usual switched a category off that an operator has to review what was
    /// sent.
    struct Spike: Hashable {
        var category: Category
        var day: Day
        /// On this day up to now.
        var count: Int64
        /// The mean of the days before, rounded up.
        var usual: Int64
    }

    /// Remembers a person who is about to be counted (``add(_:at:under:)``).
    ///
    /// Kept is the start of the pseudonym, which leads to no one by itself: two of a day's people share one by a chance of
    /// one in ten million.
    ///
    /// - Returns: Whether they are new on this day: one person is one, however often they switch a category on and off.
    mutating func addPerson(_ subject: SubjectID, to category: Category?, at now: Instant) -> Bool {
        guard let category else { return false }
        var counts = categories[category] ?? Counts()
        if counts.byDay[Self.day(now)] == nil { counts.people = [] }
        let person = Hexadecimal.encode(Array(subject.bytes.prefix(4)))
        guard !counts.people.contains(person) else { return false }
        counts.people = (counts.people + [person]).suffix(Self.personCountMax)
        categories[category] = counts
        return true
    }

    /// Counts one more disabling.
    ///
    /// - Returns: A spike, once for each category and day.
    mutating func add(_ category: Category, at now: Instant, under rule: DisableSpikeRule?) -> Spike? {
        let today = Self.day(now)
        var counts = categories[category] ?? Counts()
        counts.byDay[today, default: 0] += 1
        counts.byDay = counts.byDay.filter { $0.key >= today - Int64(Self.usualDayCount) && $0.key <= today }
        defer { categories[category] = counts }
        guard let rule, counts.reviewedOn != today else { return nil }
        let count = counts.byDay[today] ?? 0
        let before = counts.byDay.filter { $0.key < today }.values.reduce(0, +)
        let days = Int64(Self.usualDayCount)
        // count > times × before / 7, without a fraction.
        guard count >= Int64(rule.count), count * days > Int64(rule.times) * before else { return nil }
        counts.reviewedOn = today
        return Spike(category: category, day: today, count: count, usual: (before + days - 1) / days)
    }

    /// Categories under review, with the day on which the review was raised.
    package func reviews(at now: Instant) -> [(category: Category, day: Day)] {
        let today = Self.day(now)
        return Category.allCases.compactMap { category in
            guard let day = categories[category]?.reviewedOn, day > today - Int64(Self.reviewDayCount) else {
                return nil
            }
            return (category, day)
        }
    }
}

// MARK: In the store

extension DisableDays {
    /// `{"marketing":{"days":{"20416":3},"people":["1f0c77a2"],"reviewed":20416}}`
    var text: String {
        let object = JSONObject(
            categories.map { category, counts in
                var members: JSONObject = [
                    "days": .object(JSONObject(counts.byDay.map { ("\($0.key)", .integer($0.value)) }))
                ]
                members["reviewed"] = counts.reviewedOn.map { .integer($0) }
                if !counts.people.isEmpty { members["people"] = .array(counts.people.map { .string($0) }) }
                return (category.rawValue, JSONValue.object(members))
            })
        return object.description
    }

    /// - Returns: `nil` of a text that ``text`` does not write.
    init?(text: String) {
        guard let object = try? CanonicalJSON.read(Array(text.utf8)).objectValue else { return nil }
        for (name, value) in object {
            guard let category = Category(rawValue: name), let days = value["days"]?.objectValue else {
                return nil
            }
            var counts = Counts(reviewedOn: value["reviewed"]?.integerValue)
            counts.people = value["people"]?.arrayValue?.compactMap(\.stringValue) ?? []
            for (day, count) in days {
                guard let day = Day(day), let count = count.integerValue else { return nil }
                counts.byDay[day] = count
            }
            categories[category] = counts
        }
    }
}

extension RecordReading {
    package func disableDays() throws -> DisableDays {
        try setting(
            DisableDays.settingName, orDamaged: "it holds no counts of days", DisableDays.init(text:))
            ?? DisableDays()
    }
}

extension StepContext {
    /// Counts one person who switched a category off within 24 hours of a send of it, and raises a review where a day
    /// has far more of them than the week before.
    func countDisabling(of category: Category, at now: Instant) throws {
        var days = try memory.disableDays()
        let spike = days.add(category, at: now, under: policy.bundle.limits.disableSpike)
        memory.setSetting(DisableDays.settingName, to: days.text)
        guard let spike else { return }
        try record(
            ReviewEntry(
                category: Code(spike.category), cause: Code(ReviewCause.disables), count: spike.count,
                since: Instant(milliseconds: spike.day * 86_400_000), usual: spike.usual), at: now)
        observe(.review(.disables, category: category))
        alarm(
            "\(spike.count) recipients have switched `\(spike.category.rawValue)` off today within 24 hours of a send of it, \(spike.usual) on a usual day: look at what was sent"
        )
    }
}

/// Why an operator has to review a category.
package enum ReviewCause: String, CaseIterable, Sendable, Hashable {
    /// Far more people than usual switched the category off within 24 hours of a send of it.
    case disables = "disables_after_send"
}
