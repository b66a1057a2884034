package import ArgumentParser

extension AsyncParsableCommand {
    /// Runs one command line of the program to its end.
    ///
    /// - Parameter report: Tells the person who asked what was thrown, and says how the program ends.
    package static func run(
        _ arguments: [String], report: (any Error) -> ExitStatus
    ) async -> ExitStatus {
        do {
            var command = try parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return .done
        } catch let status as ExitStatus {
            // The command has printed its findings already.
            return status
        } catch {
            return report(error)
        }
    }
}
