import CommandTerminal
import Logging
import SQLiteStore

/// What the log, the service manager and who asks at an open socket are told while a state directory of an earlier version is brought up to date: a line when it
/// begins, and one each second.
final class MigrationNotices {
    private static let interval = Duration.seconds(1)

    private let logger: Logger
    private let notices: ServiceNotices?
    private let starting: StartingHandler?
    private let now: () -> ContinuousClock.Instant
    private var last: (moment: ContinuousClock.Instant, step: Step)?

    private struct Step: Equatable {
        var file: String
        var version: Int
        var work: MigrationProgress.Work
    }

    /// - Parameters:
    ///   - starting: What answers meanwhile, where the sockets are open already.
    ///   - now: Of a clock that a test moves.
    init(
        logger: Logger, notices: ServiceNotices?, starting: StartingHandler? = nil,
        now: @escaping () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        (self.logger, self.notices, self.starting, self.now) = (logger, notices, starting, now)
    }

    func tell(_ progress: MigrationProgress) {
        let moment = now()
        let step = Step(file: progress.file, version: progress.version, work: progress.work)
        if let last, last.step == step, moment - last.moment < Self.interval { return }
        last = (moment, step)
        logger.notice("\(progress)")
        notices?.migrating("\(progress)")
        starting?.migrating("\(progress)")
    }

    /// For a command: a bar, where there is a terminal.
    static func showing() -> (MigrationProgress) -> Void {
        var shown: (step: Step, bar: Progress)?
        return { progress in
            let step = Step(file: progress.file, version: progress.version, work: progress.work)
            if shown?.step != step {
                shown?.bar.end()
                let verb = progress.work == .checking ? "checking" : "bringing up to date"
                shown = (step, Progress("\(verb) \(progress.file)"))
            }
            guard progress.total > 0 else { return }
            shown?.bar.show(UInt64(progress.done), of: UInt64(progress.total))
            if progress.done >= progress.total { shown?.bar.end() }
        }
    }
}
