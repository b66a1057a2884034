import GateVocabulary
import Synchronization
import Testing

/// W3C Trace Context, sections 3.2 and 4.3; the first text is its own example.
@Suite struct TraceParentTests {
    private static let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test(arguments: [
        text, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
        "00-00000000000000000000000000000001-0000000000000001-ff",
        "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-02",
    ])
    func `what is read is written again`(_ text: String) throws {
        let trace = try #require(TraceParent(text))
        #expect(trace.text == text && trace.traceID == text.split(separator: "-")[1])
        #expect(TraceParent(bytes: trace.bytes) == trace)
        #expect(trace.isSampled == ["1", "f"].contains(text.last))
    }

    @Test func `of a later version what this one knows is read`() {
        let later = "01" + Self.text.dropFirst(2).dropLast(2) + "03"
        for text in [later, later + "-something-more"] {
            #expect(TraceParent(text)?.text == Self.text, "\(text)")
        }
        #expect(TraceParent(later + "x") == nil)
    }

    @Test(arguments: [
        "", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", text + "-", text + " ",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-0f067aa0ba902b7-01",
    ])
    func `anything else is no trace`(_ text: String) { #expect(TraceParent(text) == nil) }

    @Test func `two fields of the name are none, and its case does not matter`() {
        #expect(TraceParent(in: [("Accept", "a"), ("Traceparent", Self.text)])?.text == Self.text)
        #expect(TraceParent(in: [("traceparent", Self.text), ("traceparent", Self.text)]) == nil)
        #expect(TraceParent(in: [("tracestate", Self.text)]) == nil)
    }

    @Test func `the log takes a hundred lines a second, and the next says how many it left out`() throws {
        let lines = Mutex<[[String: String]]>([])
        let now = Mutex<Int64>(10_500)
        let log = TraceLog(isDebugging: false, uptimeMilliseconds: { now.withLock { $0 } }) {
            message, members in
            #expect(message == "decided")
            lines.withLock { $0.append(members) }
        }
        let trace = try #require(TraceParent(Self.text))
        for number in 0..<103 { log.tell("decided", of: trace, ["number": "\(number)"]) }
        #expect(lines.withLock { $0.map { $0["number"] } } == (0..<100).map { "\($0)" })
        now.withLock { $0 = 11_000 }
        log.tell("decided", of: trace, [:])
        log.tell("decided", of: trace, [:])
        #expect(
            lines.withLock { $0.suffix(2) } == [
                ["traceparent": Self.text, "left_out_before": "3"], ["traceparent": Self.text],
            ])
    }

    @Test func `what is not sampled is written at the level of debugging alone`() throws {
        let count = Mutex(0)
        let quiet = try #require(TraceParent(String(Self.text.dropLast()) + "0"))
        for (isDebugging, expected) in [(false, 0), (true, 1)] {
            let log = TraceLog(isDebugging: isDebugging, uptimeMilliseconds: { 0 }) { _, _ in
                count.withLock { $0 += 1 }
            }
            log.tell("decided", of: quiet, [:])
            log.tell("decided", of: nil, [:])
            #expect(count.withLock { $0 } == expected)
        }
        TraceLog.none.tell("decided", of: TraceParent(Self.text), [:])
        #expect(count.withLock { $0 } == 1)
    }
}
