/// How a command ends; scripts lean on these and on nothing else.
///
/// Thrown by a command that has printed what it found.
package enum ExitStatus: Int32, Error, Hashable, Sendable, CustomStringConvertible {
    /// Done, or allowed.
    case done = 0
    case failed = 1
    /// The gate said no.
    case refusedByPolicy = 2
    /// A check found a difference: a failing case, a damaged trail, a decision that comes out otherwise.
    case foundDifference = 3
    /// The command line makes no sense (`EX_USAGE`).
    case usage = 64

    package var description: String { "exit status \(rawValue)" }
}

/// Why a command could not do what it was asked, for the person who asked.
///
/// Everything a module throws is turned into one of these at the edge; see `Terminal.report(_:)` in the binary.
package struct CommandFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// Lower-case, without a full stop, input in backticks.
    package var message: String
    /// The next step.
    package var hint: String?
    package var status: ExitStatus

    package init(_ message: String, hint: String? = nil, status: ExitStatus = .failed) {
        self.message = message
        self.hint = hint
        self.status = status
    }

    package var description: String { message }

    /// A command line that parses and makes no sense.
    package static func usage(_ message: String, hint: String? = nil) -> CommandFailure {
        CommandFailure(message, hint: hint, status: .usage)
    }
}
