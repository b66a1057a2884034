import CanonicalJSON
import CommandTerminal
import Foundation
import Logging
import Synchronization
import Testing

/// One event a line, whatever it says.
struct LineLogHandlerTests {
    private final class Written: Sendable {
        private let bytes = Mutex<[UInt8]>([])
        var text: String { bytes.withLock { String(decoding: $0, as: UTF8.self) } }
        func add(_ more: [UInt8]) { bytes.withLock { $0 += more } }
    }

    private let written = Written()

    private func logger(_ format: LogFormat) -> Logger {
        Logger(label: "test") { [written] _ in
            LineLogHandler(
                format, now: { Date(timeIntervalSince1970: 1_795_000_000.25) }, write: written.add)
        }
    }

    @Test func `logfmt has the time, the level, the message and the metadata in order`() {
        var logger = logger(.logfmt)
        logger[metadataKey: "socket"] = "/run/gate.sock"
        logger.warning("a peer is not known", metadata: ["uid": "1000", "count": "\(3)"])
        #expect(
            written.text == """
                time=2026-11-18T11:06:40.250Z level=warning msg="a peer is not known" count=3 socket=/run/gate.sock uid=1000

                """)
    }

    @Test func `JSON has the same members`() throws {
        var logger = logger(.json)
        logger[metadataKey: "socket"] = "/run/gate.sock"
        logger.error("it failed", error: CocoaError(.fileNoSuchFile), metadata: ["level": "3"])
        let line = try #require(written.text.split(separator: "\n").first)
        let object = try CanonicalJSON.read(Array(line.utf8))
        #expect(object["time"] == "2026-11-18T11:06:40.250Z" && object["level"] == "error")
        #expect(object["msg"] == "it failed" && object["socket"] == "/run/gate.sock")
        #expect(object["level_"] == "3")
        #expect(object["error"]?.stringValue?.contains("CocoaError") == true)
    }

    @Test(arguments: LogFormat.allCases)
    func `what a value contains does not leave its line or its member`(_ format: LogFormat) throws {
        let hostile = "x\" level=critical msg=\"forged\r\n\u{2028}time=1 \u{202E}\u{1B}[2J\\"
        logger(format).info("\(hostile)", metadata: ["key with =\n": "\(hostile)", "empty": ""])
        #expect(written.text.unicodeScalars.count { $0 == "\n" } == 1 && written.text.hasSuffix("\n"))
        switch format {
        case .json:
            let object = try CanonicalJSON.read(Array(written.text.dropLast().utf8))
            #expect(object["msg"] == .string(hostile) && object["key with =\n"] == .string(hostile))
        case .logfmt:
            let quoted =
                #""x\" level=critical msg=\"forged\r\n\u{2028}time=1 \u{202e}\u{1b}[2J\\""#
            #expect(
                written.text
                    == "time=2026-11-18T11:06:40.250Z level=info msg=\(quoted) empty=\"\" key_with___=\(quoted)\n"
            )
        }
    }

    @Test func `an event's metadata comes before the logger's, and lower levels are not written`() {
        var logger = logger(.logfmt)
        logger.logLevel = .warning
        logger[metadataKey: "a"] = "1"
        logger.info("no")
        logger.warning("yes", metadata: ["a": "2"])
        #expect(written.text == "time=2026-11-18T11:06:40.250Z level=warning msg=yes a=2\n")
    }
}
