import BundleModel
import CompliancePolicy
import GateRecords
import GateSteps
import GateVocabulary
import SendPlanning

/// What the sends of a period would have come to that were decided in shadow (decision SG-0082), by the trail alone.
///
/// As large as there are types, reasons and countries among them, whatever the number of sends.
struct ShadowFigures {
    /// Sends of one kind, and what their producers' own sender did with them.
    struct Count: Hashable {
        var sends: UInt64 = 0
        var sent: UInt64 = 0
        var notSent: UInt64 = 0
        /// Sends of which the producer does not say it.
        var unsaid: UInt64 { sends - sent - notSent }

        mutating func add(_ sent: Bool?) {
            sends += 1
            if sent == true { self.sent += 1 }
            if sent == false { notSent += 1 }
        }

        mutating func add(_ other: Count) {
            sends += other.sends
            sent += other.sent
            notSent += other.notSent
        }
    }

    struct Cell: Hashable {
        /// `nil` of a type that is in no bundle.
        var type: TypeID?
        var reason: Reason
        /// `nil` where none is known.
        var country: RegionCode?
    }

    /// One send, for a reader who wants to look at it. It names no person, and neither does its entry.
    struct Sample: Hashable {
        var entry: UInt64
        var send: SendID
        var at: Instant
        var sentence: String
        var sent: Bool?
    }

    struct Kind: Hashable {
        var type: TypeID?
        var reason: Reason
    }

    static let sampleCountMax = 3

    let period: ReportPeriod
    private(set) var cells: [Cell: Count] = [:]
    /// Of what would have been stopped: the first of each type and reason.
    private(set) var samples: [Kind: [Sample]] = [:]
    /// Sends of the period that were carried out.
    private(set) var enforcedCount: UInt64 = 0
    private(set) var first: Instant?
    private(set) var last: Instant?
    /// The bundles that decided, in the order of their first decision.
    private(set) var policies: [PolicyDigest] = []

    init(_ period: ReportPeriod) { self.period = period }

    /// Entries are given in any order.
    ///
    /// - Throws: What is wrong with an entry that cannot be read.
    mutating func add(_ bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?) throws {
        // Only an entry of a send starts so; nearly all others are passed by unread.
        guard bytes.starts(with: "{\"caller\":".utf8) else { return }
        let read: (index: UInt64, time: Instant, entry: SendEntry)
        do throws(EntryError) {
            read = try SendEntry.read(bytes)
        } catch .otherKind {
            return
        }
        guard period.contains(read.time) else { return }
        guard read.entry.isShadow else {
            if read.entry.caller != .gateway { enforcedCount += 1 }
            return
        }
        try add(read.entry, index: read.index, at: read.time, policies)
    }

    private mutating func add(
        _ send: SendEntry, index: UInt64, at time: Instant,
        _ policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws {
        first = first.map { min($0, time) } ?? time
        last = last.map { max($0, time) } ?? time
        if !self.policies.contains(send.policy) { self.policies.append(send.policy) }
        let overall = send.overall
        let region = send.deliveries.first?.facts.accountRegion?.code
        let cell = Cell(
            type: send.request.type, reason: overall.reason,
            country: region.flatMap { $0 == .unknown ? nil : $0.country })
        cells[cell, default: Count()].add(send.sent)
        let kind = Kind(type: cell.type, reason: cell.reason)
        guard !overall.outcome.isPromise, samples[kind, default: []].count < Self.sampleCountMax else {
            return
        }
        let words = Explanation(try policies(send.policy)?.sentences(in: nil) ?? .english)
        samples[kind, default: []].append(
            Sample(
                entry: index, send: send.send, at: time,
                sentence: words.sentence(overall.reason, overall.detail), sent: send.sent))
    }
}

/// The same added up, as it is shown.
struct ShadowReport {
    /// What sends would have come to, and what their producers did all the same.
    struct Line: Hashable {
        /// A type, a reason or a country.
        var name: String
        /// Would have gone out, now or later.
        var forwarded = ShadowFigures.Count()
        /// The part of ``forwarded`` that would have waited: for a time of day, or for a summary.
        var later = ShadowFigures.Count()
        /// Would have been stopped.
        var stopped = ShadowFigures.Count()

        var sends: UInt64 { forwarded.sends + stopped.sends }

        mutating func add(_ count: ShadowFigures.Count, of reason: Reason) {
            guard reason.outcome.isPromise else { return stopped.add(count) }
            forwarded.add(count)
            if reason.outcome != .forward { later.add(count) }
        }
    }

    /// Why sends of a type would have been stopped.
    struct Stop: Hashable {
        var type: String
        var reason: Reason
        var count: ShadowFigures.Count
        var samples: [ShadowFigures.Sample]
    }

    /// One cell, for a spreadsheet.
    struct Row: Hashable {
        var type: String
        var reason: Reason
        var country: String
        var count: ShadowFigures.Count
    }

    /// Stands for the type of a send that is in no bundle, whose name is a text of the caller's.
    static let unregistered = "(unregistered)"
    static let unknownCountry = "(unknown)"

    let period: ReportPeriod
    let first: Instant?
    let last: Instant?
    let enforcedCount: UInt64
    let policies: [PolicyDigest]
    let total: Line
    let types: [Line]
    let reasons: [Line]
    let countries: [Line]
    let stops: [Stop]
    let rows: [Row]
    /// What was verified.
    let origin: String
    let entryCount: UInt64

    init(_ figures: ShadowFigures, of origin: String, entryCount: UInt64) {
        (self.origin, self.entryCount) = (origin, entryCount)
        period = figures.period
        (first, last) = (figures.first, figures.last)
        (enforcedCount, policies) = (figures.enforcedCount, figures.policies)
        func name(_ type: TypeID?) -> String { type?.text ?? Self.unregistered }
        rows = figures.cells.map { cell, count in
            Row(
                type: name(cell.type), reason: cell.reason,
                country: cell.country?.description ?? Self.unknownCountry, count: count)
        }.sorted {
            ($0.type, $0.reason.rawValue, $0.country) < ($1.type, $1.reason.rawValue, $1.country)
        }
        var total = Line(name: "all")
        for row in rows { total.add(row.count, of: row.reason) }
        self.total = total
        types = Self.lines(rows, by: \.type)
        reasons = Self.lines(rows, by: \.reason.rawValue)
        countries = Self.lines(rows, by: \.country)
        var stops: [ShadowFigures.Kind: ShadowFigures.Count] = [:]
        for (cell, count) in figures.cells where !cell.reason.outcome.isPromise {
            stops[.init(type: cell.type, reason: cell.reason), default: .init()].add(count)
        }
        self.stops = stops.map { kind, count in
            Stop(
                type: name(kind.type), reason: kind.reason, count: count,
                samples: figures.samples[kind] ?? [])
        }.sorted {
            ($1.count.sends, $0.type, $0.reason.rawValue) < ($0.count.sends, $1.type, $1.reason.rawValue)
        }
    }

    /// The most that would have been stopped first.
    private static func lines(_ rows: [Row], by key: (Row) -> String) -> [Line] {
        var lines: [String: Line] = [:]
        for row in rows { lines[key(row), default: Line(name: key(row))].add(row.count, of: row.reason) }
        return lines.values.sorted {
            ($1.stopped.sends, $1.sends, $0.name) < ($0.stopped.sends, $0.sends, $1.name)
        }
    }
}
