/// One thing that keeps a bundle from being loaded, for the person who wrote the line.
package struct PolicyDiagnostic: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// Relative to the bundle's folder.
    package var file: String
    /// From 1; `nil` when the problem is the whole file, or the bundle came from an archive.
    package var line: Int?
    package var column: Int?
    /// Lower-case, without a full stop, input in backticks.
    package var message: String
    /// What to do about it, on a line of its own.
    package var hint: String?

    package init(file: String, line: Int? = nil, column: Int? = nil, message: String, hint: String? = nil) {
        self.file = file
        self.line = line
        self.column = column
        self.message = message
        self.hint = hint
    }

    package init(file: String, at location: SourceLocation?, _ message: String, hint: String? = nil) {
        self.init(
            file: file, line: location?.line, column: location?.column, message: message, hint: hint)
    }

    /// How a message names a place of a page, e.g. "`channels.push.body`".
    static func name(of path: [String]) -> String {
        path.isEmpty ? "the file" : "`\(path.joined(separator: "."))`"
    }

    package var description: String {
        var place = file
        if let line { place += ":\(line)" }
        if line != nil, let column { place += ":\(column)" }
        return "\(place): \(message)" + (hint.map { "\n  hint: \($0)" } ?? "")
    }

    package static func < (left: PolicyDiagnostic, right: PolicyDiagnostic) -> Bool {
        (left.file, left.line ?? 0, left.column ?? 0, left.message)
            < (right.file, right.line ?? 0, right.column ?? 0, right.message)
    }
}

extension Sequence {
    /// The elements as a message lists them: "`a`, `b`".
    func quoted<Text>(_ text: (Element) -> Text) -> String {
        map { "`\(text($0))`" }.joined(separator: ", ")
    }

    var quoted: String { quoted { $0 } }
}

extension Collection where Element: Hashable {
    var namesOneTwice: Bool { Set(self).count < count }
}

/// Every problem of a bundle, in the order of its files and lines. Never empty.
package struct PolicyDiagnostics: Error, Hashable, Sendable, CustomStringConvertible {
    package let diagnostics: [PolicyDiagnostic]

    package init(_ diagnostics: [PolicyDiagnostic]) {
        precondition(!diagnostics.isEmpty, "a bundle was refused without a problem")
        self.diagnostics = Array(Set(diagnostics)).sorted()
    }

    package var description: String { diagnostics.map(\.description).joined(separator: "\n") }
}
