package import CanonicalJSON
package import GateRecords

/// One answer. The endpoint adds framing headers; for a line of a stream it writes only ``body`` and a newline.
package struct Answer: Sendable {
    package var status: Int
    package var contentType: String
    package var headers: [(name: String, value: String)]
    private let content: Content

    private enum Content {
        case bytes([UInt8])
        case made(@Sendable () -> [UInt8])
    }

    package init(
        status: Int, contentType: String = MediaType.json, headers: [(name: String, value: String)] = [],
        body: [UInt8]
    ) {
        self.status = status
        self.contentType = contentType
        self.headers = headers
        content = .bytes(body)
    }

    /// - Parameter body: Gives the bytes on the thread that writes them, so that the engine's does not.
    package init(status: Int, contentType: String, making body: @escaping @Sendable () -> [UInt8]) {
        self.status = status
        self.contentType = contentType
        headers = []
        content = .made(body)
    }

    package init(status: Int = 200, json: JSONObject) {
        self.init(status: status, body: CanonicalJSON.write(json))
    }

    package init(status: Int = 200, _ answer: some ShownRecord) {
        self.init(status: status, body: answer.bytes)
    }

    /// The bytes of the body. They may be made anew each time: take them once.
    package var body: [UInt8] {
        switch content {
        case .bytes(let bytes): bytes
        case .made(let make): make()
        }
    }
}

/// Media types this gateway speaks.
package enum MediaType {
    package static let json = "application/json"
    package static let problem = "application/problem+json"
    package static let lines = "application/x-ndjson"
    package static let text = "text/plain; charset=utf-8"
    package static let bytes = "application/octet-stream"

    /// Whether a `Content-Type` names `mediaType`, whatever its case; of parameters only a `charset` of
    /// UTF-8 is known (RFC 9110 section 8.3.1), because any other would be a second way to read the bytes.
    package static func matches(_ header: String, _ mediaType: String) -> Bool {
        if CodeUnits.equal(header, mediaType) { return true }
        let parts = header.split(separator: ";", omittingEmptySubsequences: false).map { trimmed($0) }
        guard parts[0].lowercased() == mediaType else { return false }
        return parts.dropFirst().allSatisfy { parameter in
            let parameter = parameter.lowercased()
            return parameter.isEmpty || parameter == "charset=utf-8" || parameter == "charset=\"utf-8\""
        }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}

extension TextRule {
    /// Any text, in answers: what the gateway says, it need not check.
    static let anyText = TextRule("a text") { _ in true }
}

extension Shape {
    static let anyText = Shape.text(.anyText)
    /// A list in an answer; bounded by what the store holds and the query asks.
    static func all(_ shape: Shape) -> Shape { .list(of: shape, countMax: 100_000) }
}
