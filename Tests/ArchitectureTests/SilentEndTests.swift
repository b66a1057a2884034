import Foundation
import Testing

/// A test says what it saw: it does not skip, end early, or take what it could not read for nothing.
///
/// Read from the text of every test. A loop that may run over nothing is not seen here; such a loop counts what it
/// looked at and expects the count.
@Suite struct SilentEndTests {
    private enum Ending: String, CaseIterable {
        case skip = "skips: let it fail where it cannot run (`Machine.requireRoot`)"
        case earlyReturn = "ends without a word: use `#require`, or `Issue.record` before the `return`"
        case unreadable = "takes what it cannot read for nothing: read with `try`"
        case droppedError =
            "drops an error: let it fail the test, or count what was reached and list it in `lookedFor`"
    }

    /// How often `try?` stands in a file where an error is one of the answers looked for: damaged bytes that read as
    /// something or not at all, a disk that fails, a peer that has closed already.
    private static let lookedFor: [String: Int] = [
        "AuditTrailTests/DamagedTrailTests.swift": 4,
        "CanonicalJSONTests/ReadingTests.swift": 2,
        "CanonicalJSONTests/WritingTests.swift": 1,
        "CompliancePolicyTests/DatedDifferenceTests.swift": 1,
        "GateStepsTests/MailboxTests.swift": 2,
        "GateStepsTests/PhoneNumberTests.swift": 2,
        "GatewayPipelineTests/RouteGrantTests.swift": 1,
        "KeyLifecycleTests/KeyStateTests.swift": 1,
        // A text that the rule refuses stands for itself; a name that is refused is written as it is.
        "PayloadCompositionTests/Samples.swift": 1,
        "PayloadCompositionTests/WrittenTextTests.swift": 2,
        "SQLiteStoreTests/DamageTests.swift": 1,
        "SQLiteStoreTests/FaultyFiles.swift": 1,
        "SQLiteStoreTests/OpeningTests.swift": 1,
        // A number that cannot be counted leaves the icon as it is.
        "SealedPushTests/HandbookIOS.swift": 1,
        "SealedPushTests/SealedPushOpenerTests.swift": 1,
        "SendPlanningTests/DamagedEntryTests.swift": 1,
        "SendgateClientTests/FakeGate.swift": 1,
        "SendgateEndToEndTests/AddressFormTests.swift": 1,
        "SendgateEndToEndTests/DurabilityTests.swift": 1,
        // A body that is not JSON has no members.
        "SendgateEndToEndTests/Harness/RawConnection.swift": 1,
        "TrailDirectoryTests/WriterTests.swift": 4,
        "UnixHTTPClientTests/UnixHTTPClientTests.swift": 1,
        "UnixSocketEndpointTests/EndpointKit.swift": 1,
        "UnixSocketEndpointTests/HostileClientTests.swift": 1,
        "WireProtocolTests/BodyTests.swift": 3,
    ]

    private static func endings(in text: String) -> [(ending: Ending, line: Int)] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.range(of: "//").map { String(line[..<$0.lowerBound]) } ?? String(line)
        }
        func indentation(_ line: String) -> Int { line.prefix { $0 == " " }.count }
        // The whole text at once: an expression takes longer to begin than to read a line.
        let code = lines.joined(separator: "\n")
        func places(of expression: some RegexComponent) -> Set<Int> {
            Set(
                code.matches(of: expression).map { match in
                    1 + code.utf8[..<match.range.lowerBound].count { $0 == UInt8(ascii: "\n") }
                })
        }
        let skips = places(
            of: /\.enabled\(|\.disabled\(|withKnownIssue|XCTSkip|isRoot|geteuid\(\) == 0/)
        let unreadables = places(
            of: /contents\(atPath:|enumerator\([^)\n]*\)\?|contentsOf[^?\n]*\)\) \?\?/)
        let droppedErrors = places(of: /\btry\?(?! FileManager\.default\.removeItem)/)
        let earlyReturns = places(of: /else \{ return( nil| \[\]| \[:\]| "")? \}/)
        var found: [(Ending, Int)] = []
        // The indentation of the test function a line is in.
        var function: Int?
        /// A closure and a function inside the test return to who called them, who counts what it came to.
        func isInClosure(_ number: Int, of function: Int) -> Bool {
            var inner = indentation(lines[number])
            for line in lines[..<number].reversed() where !line.isEmpty && indentation(line) < inner {
                inner = indentation(line)
                if inner <= function { return false }
                if line.hasSuffix(" in") || line.contains("func ") { return true }
            }
            return false
        }
        for (number, line) in lines.enumerated() {
            let place = number + 1
            let words = line.drop { $0 == " " }
            if words.hasPrefix("@Test") { function = indentation(line) }
            if words == "}", indentation(line) == function { function = nil }
            if skips.contains(place) { found.append((.skip, place)) }
            if unreadables.contains(place) { found.append((.unreadable, place)) }
            if droppedErrors.contains(place) { found.append((.droppedError, place)) }
            let isBare = words == "return"
            guard isBare || earlyReturns.contains(place), let outer = function,
                !isInClosure(number, of: outer)
            else { continue }
            if earlyReturns.contains(place) { found.append((.earlyReturn, place)) }
            if isBare, number + 1 < lines.count,
                lines[number + 1].drop(while: { $0 == " " }) == "}"
            {
                let block = lines[..<number].reversed().prefix {
                    indentation($0) >= indentation(line) || $0.isEmpty
                }
                if !block.contains(where: { $0.contains("Issue.record(") || $0.contains("#expect") }) {
                    found.append((.earlyReturn, place))
                }
            }
        }
        return found
    }

    @Test func `no test ends in silence`() throws {
        let root = LayerTests.root.appending(path: "Tests").path(percentEncoded: false)
        let files = try #require(FileManager.default.enumerator(atPath: root)).compactMap { $0 as? String }
            .filter { $0.hasSuffix(".swift") && !$0.hasPrefix("Benchmarks/") }
        #expect(files.count > 150)
        var (dropped, testCount): ([String: Int], Int) = ([:], 0)
        for file in files where !file.hasSuffix("/SilentEndTests.swift") {
            let text = try String(contentsOfFile: "\(root)/\(file)", encoding: .utf8)
            testCount += text.matches(of: /@Test\b/).count
            for (ending, line) in Self.endings(in: text) {
                if ending == .droppedError {
                    dropped[file, default: 0] += 1
                } else {
                    Issue.record("\(file):\(line) \(ending.rawValue)")
                }
            }
        }
        #expect(testCount > 700, "only \(testCount) tests were read")
        for file in Set(dropped.keys).union(Self.lookedFor.keys).sorted() {
            #expect(
                dropped[file] ?? 0 == Self.lookedFor[file] ?? 0, "\(file) \(Ending.droppedError.rawValue)")
        }
    }

    @Test(arguments: [
        ("@Test(.enabled(if: isRight))\nfunc a() {", "skip"), ("guard geteuid() == 0 else {", "skip"),
        ("withKnownIssue {", "skip"),
        ("@Test func a() {\n    guard let b else { return }\n}", "earlyReturn"),
        (
            "@Test func a() {\n    guard let b else {\n        print(b)\n        return\n    }\n}",
            "earlyReturn"
        ),
        ("@Test func a() {\n    if b {\n        return\n    }\n}", "earlyReturn"),
        ("let b = FileManager.default.contents(atPath: c)", "unreadable"),
        ("let b = FileManager.default.enumerator(atPath: c)?.compactMap { $0 }", "unreadable"),
        ("let b = (try? String(contentsOfFile: c)) ?? \"\"", "unreadable droppedError"),
        ("guard let b = try? c() else { continue }", "droppedError"),
        ("let b = try? FileManager.default.copyItem(atPath: c, toPath: d)", "droppedError"),
    ])
    func `each silent end is seen`(_ text: String, _ endings: String) {
        #expect(
            Self.endings(in: text).map { "\($0.ending)" } == endings.split(separator: " ").map(String.init))
    }

    @Test(arguments: [
        "@Test func a() {\n    guard let b else {\n        Issue.record(\"no b\")\n        return\n    }\n}",
        "func a() {\n    guard let b else { return }\n}",
        "@Test func a() {\n    let b = c {\n        return\n            1\n    }\n}",
        "@Test func a() {\n    b { c in\n        guard c else { return }\n    }\n}",
        "deinit { try? FileManager.default.removeItem(atPath: b) }", "// try? nothing",
    ])
    func `what is not silent is let be`(_ text: String) {
        #expect(Self.endings(in: text).isEmpty)
    }
}
