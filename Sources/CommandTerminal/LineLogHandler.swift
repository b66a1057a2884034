import CanonicalJSON
package import Foundation
package import Logging

/// How a program writes its log: one event a line, the same in both programs.
package enum LogFormat: String, CaseIterable, Sendable {
    /// `time=… level=… msg="…" key=value`, with the event's metadata in the order of its keys.
    case logfmt
    /// The same members as one JSON object.
    case json
}

/// Writes log events to standard error, a line each.
///
/// Whatever a message or a value contains, it stays on its line and in its member: a reader may split the log at line feeds. A value
/// of the metadata that is no text is written as its description. `time`, `level`, `msg` and `error` are the event's own; metadata of
/// that name gets a `_` behind it.
package struct LineLogHandler: LogHandler {
    package var metadata: Logger.Metadata = [:]
    package var logLevel: Logger.Level = .info
    private let format: LogFormat
    private let now: @Sendable () -> Date
    private let write: @Sendable ([UInt8]) -> Void

    package init(
        _ format: LogFormat, now: @escaping @Sendable () -> Date = { Date() },
        write: @escaping @Sendable ([UInt8]) -> Void = Self.writeToStandardError
    ) {
        self.format = format
        self.now = now
        self.write = write
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var members = [
            ("time", now().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))),
            ("level", event.level.rawValue), ("msg", event.message.description),
        ]
        if let error = event.error { members.append(("error", "\(error)")) }
        let own = Set(members.map(\.0) + ["error"])
        let metadata = metadata.merging(event.metadata ?? [:]) { $1 }
        for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
            members.append((own.contains(key) ? "\(key)_" : key, value.description))
        }
        // One write: lines of two threads never mix.
        write(line(of: members) + [UInt8(ascii: "\n")])
    }

    private func line(of members: [(key: String, value: String)]) -> [UInt8] {
        switch format {
        case .json:
            let pairs = members.map { ($0.key, JSONValue.string($0.value)) }
            return CanonicalJSON.write(.object(JSONObject(pairs)))
        case .logfmt:
            let words = members.map { "\(Self.key($0.key))=\(Self.value($0.value))" }
            return Array(words.joined(separator: " ").utf8)
        }
    }

    private static func key(_ text: String) -> String {
        let isPlain = { (scalar: Unicode.Scalar) in scalar.isASCII && scalar.properties.isAlphabetic }
        let scalars = text.unicodeScalars.map { scalar -> Unicode.Scalar in
            isPlain(scalar) || "0123456789_.-".unicodeScalars.contains(scalar) ? scalar : "_"
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// Quotes a text that is empty or has a space, `=`, `"`, `\` or a character that prints nothing.
    private static func value(_ text: String) -> String {
        let needsQuotes = { (scalar: Unicode.Scalar) in
            " =\"\\".unicodeScalars.contains(scalar) || isUnprintable(scalar)
        }
        guard text.isEmpty || text.unicodeScalars.contains(where: needsQuotes) else { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case let scalar where isUnprintable(scalar):
                quoted += "\\u{\(String(scalar.value, radix: 16))}"
            case let scalar: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }

    /// Control characters, and those that begin a line or turn the direction of the text for whoever reads the log.
    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
        default: false
        }
    }

    package static func writeToStandardError(_ bytes: [UInt8]) {
        FileHandle.standardError.write(Data(bytes))
    }
}
