import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateRecords
import GateTestKit
import GateVocabulary
import SendPlanning
import Testing

@testable import sendgate

/// What would have been stopped, as it is told.
@Suite struct ShadowReportTests {
    private static let start = Instant.utc("2026-11-02T12:00:00Z")
    private let policy: CompiledPolicy

    init() throws { policy = try Repository.policy() }

    /// One entry of a send.
    ///
    /// - Parameter day: From ``start`` on.
    private func entry(
        _ index: UInt64, day: Int64 = 0, _ type: String? = "transaction.remittance_sent",
        by caller: String = "payments", in region: String? = "FR", sent: Bool? = nil, isShadow: Bool = true
    ) throws -> [UInt8] {
        let time = Self.start.advanced(bySeconds: day * 86_400)
        var facts = Facts.paris(at: time.rfc3339)
        facts.accountRegion = region.map { .of($0) }
        facts.consent = ConsentFact(state: .neverAsked)
        let request = AttestedRequest(
            caller: CallerName(caller), type: TypeID(type ?? ""), channel: .push, critical: false)
        let decision = decide(request, given: facts, under: policy)
        let send = SendEntry(
            send: SendID(high: 7, low: index), subject: SubjectID(high: 1, low: 2),
            caller: CallerName(caller), peer: .init(userID: 1, groupID: 1, processID: 1),
            request: .init(
                type: type.map { TypeID($0) }, typeByteCount: type == nil ? 9 : nil, channel: .push,
                critical: false),
            paramsVerdict: [],
            deliveries: [
                .init(destination: Tag(high: 3, low: 4), message: nil, facts: facts, decision: decision)
            ],
            policy: policy.digest, tzdata: "2026b", isShadow: isShadow, sent: sent)
        return try send.bytes(index: index, time: time)
    }

    private func report(
        _ entries: [[UInt8]], _ period: ReportPeriod = ReportPeriod()
    ) throws -> ShadowReport {
        var figures = ShadowFigures(period)
        for entry in entries { try figures.add(entry) { $0 == policy.digest ? policy : nil } }
        return ShadowReport(figures, of: "gate.example/test", entryCount: UInt64(entries.count))
    }

    /// 6 remittances that go out, 5 offers without consent, 1 send of no type, 2 that were carried out.
    private func month() throws -> [[UInt8]] {
        var entries: [[UInt8]] = []
        func add(_ make: (UInt64) throws -> [UInt8]) rethrows {
            entries.append(try make(UInt64(entries.count)))
        }
        for number in 0..<6 {
            try add { try entry($0, day: Int64(number), sent: number < 4 ? true : number == 4 ? false : nil) }
        }
        for number in 0..<5 {
            try add {
                try entry(
                    $0, day: Int64(number), "promo.offer", by: "marketing", in: number < 3 ? "DE" : nil,
                    sent: number < 2)
            }
        }
        try add { try entry($0, nil) }
        for _ in 0..<2 { try add { try entry($0, isShadow: false) } }
        return entries
    }

    @Test func `every send in shadow counts once, by type, reason and country`() throws {
        let report = try report(try month())
        #expect(report.total.sends == 12 && report.enforcedCount == 2)
        #expect(report.total.forwarded == .init(sends: 6, sent: 4, notSent: 1))
        #expect(report.total.stopped == .init(sends: 6, sent: 2, notSent: 3))
        let types = report.types.map { "\($0.name) \($0.forwarded.sends) \($0.stopped.sends)" }
        #expect(
            types == [
                "promo.offer 0 5", "(unregistered) 0 1", "transaction.remittance_sent 6 0",
            ], "\(types)")
        let reasons = Dictionary(uniqueKeysWithValues: report.reasons.map { ($0.name, $0.sends) })
        #expect(reasons == ["allowed": 6, "no_gdpr_consent": 5, "unknown_type": 1], "\(reasons)")
        let countries = Dictionary(uniqueKeysWithValues: report.countries.map { ($0.name, $0.sends) })
        #expect(countries == ["FR": 7, "DE": 3, "(unknown)": 2], "\(countries)")
        let offers = try #require(report.stops.first)
        #expect(offers.type == "promo.offer" && offers.count.sends == 5)
        // The first three, with the sentence of the reason.
        #expect(offers.samples.map(\.entry) == [6, 7, 8])
        #expect(offers.samples.map(\.sent) == [true, true, false])
        #expect(offers.samples.allSatisfy { $0.sentence.hasSuffix(".") })
    }

    @Test func `a period begins with its first moment and ends before its last`() throws {
        let entries = try month()
        let period = ReportPeriod(
            since: Self.start.advanced(bySeconds: 86_400), until: Self.start.advanced(bySeconds: 3 * 86_400))
        let report = try report(entries, period)
        #expect(report.total.sends == 4 && report.enforcedCount == 0)
        #expect(
            report.lines.first?.hasPrefix("from 2026-11-03T12:00:00Z to 2026-11-05T12:00:00Z, 4 sends")
                == true)
        #expect(try self.report([], period).lines == [ShadowReport.nothing])
    }

    @Test func `a later send is one that would go out`() throws {
        var line = ShadowReport.Line(name: "all")
        for reason in [Reason.allowed, .quietHoursDeferred, .digested, .frequencyCap] {
            line.add(.init(sends: 1, sent: 0, notSent: 1), of: reason)
        }
        #expect(line.forwarded.sends == 3 && line.later.sends == 2 && line.stopped.sends == 1)
        #expect(line.forwarded.notSent == 3 && line.sends == 4)
    }

    @Test func `every form has the same figures`() throws {
        let report = try report(try month())
        let rows = report.csv.components(separatedBy: "\r\n").dropLast().map {
            $0.components(separatedBy: ",")
        }
        #expect(rows[0].count == 8 && rows.allSatisfy { $0.count == 8 })
        let sums = (4...7).map { column in rows.dropFirst().compactMap { Int($0[column]) }.reduce(0, +) }
        #expect(sums == [12, 6, 4, 2], "\(sums)")
        let json = report.json
        #expect(json["total"]?["stopped_and_sent"] == 2 && json["total"]?["forwarded_and_not_sent"] == 1)
        #expect(json["types"]?.arrayValue?.count == 3 && json["enforced"] == 2)
        let page = String(decoding: report.page, as: UTF8.self)
        for text in [
            "12 sends were decided in shadow. 6 of them (50.00 %)", "promo.offer", "no_gdpr_consent",
            "Signature",
        ] {
            #expect(page.contains(text), "\(text)")
        }
        // It needs nothing beside it.
        for text in ["http:", "https:", "<script", "src=", "@import", "url("] {
            #expect(!page.contains(text), "\(text)")
        }
        let totals = report.lines.filter { $0.hasPrefix("all ") }.map { $0.split(separator: " ") }
        #expect(totals == Array(repeating: ["all", "12", "6", "0", "6", "2", "1"], count: 3), "\(totals)")
    }

    @Test func `what a caller could have written is text on the page and in a cell`() throws {
        var figures = ShadowFigures(ReportPeriod())
        let hostile = "<img src=x onerror=alert(1)>\",\"=1+1"
        try figures.add(try entry(0, "promo.offer", by: "marketing")) { _ in policy }
        let report = ShadowReport(figures, of: hostile, entryCount: 1)
        let page = String(decoding: report.page, as: UTF8.self)
        #expect(!page.contains("<img") && page.contains("&lt;img"))
        #expect(ShadowReport.quoted("=1+1") == "'=1+1" && ShadowReport.quoted("a") == "a")
        #expect(ShadowReport.quoted("a\"b,c") == "\"a\"\"b,c\"")
    }

    /// A text, and its cell.
    private static let cells: [(text: String, cell: String)] = [
        ("+1", "'+1"), ("-1", "'-1"), ("@a", "'@a"), ("\t=1", "'\t=1"), ("a=1", "a=1"), ("", ""),
        // Each of the two alone ends a line, and together they are one character.
        ("\r1", "\"'\r1\""), ("\n1", "\"'\n1\""), ("\r\n1", "\"'\r\n1\""),
        ("a\rb", "\"a\rb\""), ("a\nb", "\"a\nb\""), ("a\r\nb", "\"a\r\nb\""),
        // A mark makes another character of the one before it.
        ("=\u{301}1", "'=\u{301}1"), ("a,\u{301}b", "\"a,\u{301}b\""), ("a\"\u{301}", "\"a\"\"\u{301}\""),
    ]

    @Test(arguments: cells.indices) func `no cell is a formula or two cells`(index: Int) {
        let (text, cell) = Self.cells[index]
        #expect(Array(ShadowReport.quoted(text).utf8) == Array(cell.utf8))
    }

    @Test(arguments: [
        ["--from", "yesterday"], ["--to", "2026-02-30"], ["--csv", "--json"],
        ["--from", "2026-11-17", "--to", "2026-11-17"],
    ])
    func `what makes no report ends with 64`(arguments: [String]) async throws {
        let run = try await CommandLineRun(["shadow", "report", "/tmp"] + arguments)
        #expect(run.status == 64, "\(run.errors)")
    }

    @Test func `a page is written once, and a damaged trail ends with 3`() async throws {
        let folder = try TemporaryFolder()
        let gate = try await GatewayFixture(in: folder.root)
        try await gate.stop()
        let (trail, file) = (folder.path("gate/trail"), folder.path("shadow.html"))
        let first = try await CommandLineRun("shadow", "report", trail, "--html", file)
        #expect(first.status == 0 && first.output.contains(ShadowReport.nothing), "\(first.errors)")
        let again = try await CommandLineRun("shadow", "report", trail, "--html", file)
        #expect(again.status == 1 && again.errors.contains("never overwritten"))
        let checkpoint = URL(fileURLWithPath: "\(trail)/checkpoint")
        var bytes = try Data(contentsOf: checkpoint)
        bytes[bytes.count - 8] ^= 1
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: checkpoint.path)
        try bytes.write(to: checkpoint)
        let damaged = try await CommandLineRun("shadow", "report", trail)
        #expect(damaged.status == 3, "\(damaged.errors)")
    }
}
