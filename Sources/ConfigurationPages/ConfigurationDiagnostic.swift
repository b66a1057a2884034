/// One thing in a configuration that a program refuses to start with.
package struct ConfigurationDiagnostic: Hashable, Sendable, CustomStringConvertible {
    /// `file:line:column` for a file, the variable's or flag's name otherwise; `nil` when it was not set.
    package var place: String?
    /// Lower-case, without a full stop, input in backticks.
    package var message: String
    package var hint: String?

    package init(_ message: String, at place: String? = nil, hint: String? = nil) {
        self.place = place
        self.message = message
        self.hint = hint
    }

    package var description: String { place.map { "\($0): \(message)" } ?? message }
}

/// Every problem of a configuration at once. Never empty.
package struct ConfigurationDiagnostics: Error, Hashable, Sendable, CustomStringConvertible {
    package let diagnostics: [ConfigurationDiagnostic]

    package init(_ diagnostics: [ConfigurationDiagnostic]) {
        precondition(!diagnostics.isEmpty, "a configuration was refused without a problem")
        self.diagnostics = diagnostics
    }

    package var description: String { diagnostics.map(\.description).joined(separator: "\n") }
}
