import Foundation

/// The streams and the environment of one command: the process's own, or a test's.
///
/// Task-local, so that several commands can run in one process without seeing each other's words. A command reads and
/// writes through ``Terminal`` and never names a descriptor itself.
package struct Console: Sendable {
    /// The program's name, before errors and warnings.
    package var program = "sendgate"
    /// Standard output.
    package var writeOutput: @Sendable ([UInt8]) -> Void
    /// Standard error.
    package var writeErrors: @Sendable ([UInt8]) -> Void
    /// What `-` stands for where a command takes a file.
    package var inputDescriptor: Int32
    package var environment: [String: String]
    /// Whether a person sees standard error while the command runs, so that progress is shown.
    package var isWatched: Bool
    /// Whether standard output is a terminal whose reader did not ask for plain text (`NO_COLOR`).
    package var isColoured: Bool

    /// Where the service manager lays credentials, when it does (systemd.exec, "Credentials").
    package var credentialsDirectory: String? { environment["CREDENTIALS_DIRECTORY"] }

    package init(
        writeOutput: @escaping @Sendable ([UInt8]) -> Void,
        writeErrors: @escaping @Sendable ([UInt8]) -> Void,
        inputDescriptor: Int32, environment: [String: String], isWatched: Bool, isColoured: Bool = false
    ) {
        self.writeOutput = writeOutput
        self.writeErrors = writeErrors
        self.inputDescriptor = inputDescriptor
        self.environment = environment
        self.isWatched = isWatched
        self.isColoured = isColoured
    }

    @TaskLocal package static var current = Console.process

    private static let process = Console(
        writeOutput: { write($0, to: STDOUT_FILENO) }, writeErrors: { write($0, to: STDERR_FILENO) },
        inputDescriptor: STDIN_FILENO, environment: ProcessInfo.processInfo.environment,
        isWatched: isatty(STDERR_FILENO) == 1,
        isColoured: isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["NO_COLOR"] == nil)

    private static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress! + offset, bytes.count - offset)
            }
            if count < 0, errno == EINTR { continue }
            // The reader has closed the stream, or the disk is full; there is no second place to say so.
            guard count > 0 else { return }
            offset += count
        }
    }
}
