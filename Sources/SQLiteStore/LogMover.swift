import Dispatch
import Foundation
import GateSteps
import GatewayPipeline
import Synchronization

/// Moves the log of a database into it beside the connection that writes, on a thread of its own: a commit that did it itself held
/// up everything behind it for as long as some ten thousand pages take.
///
///     commit: the log is long ──→ passes, each over what was durable before it ──→ few frames are left
///     commits go on                                                                │
///     a later commit moves these few itself, with no other in between ←────────────┘  and the log begins anew
///
/// The log begins anew only after all of it was moved with no commit behind it, which no pass beside the writer sees.
///
/// A start cuts a log behind its mark (``LogMark``), so nothing that is not marked may be in the database. SQLite moves no frame that
/// a reader does not see yet: a pass begins a reader between two commits, makes durable and marks what it sees, and keeps it
/// until the pass is over.
final class LogMover: Sendable {
    private let connection: Connection
    private let reader: Connection
    /// Holds a pass that was begun.
    private let running = DispatchGroup()
    /// Held by a pass, and by whoever must move the log to its end.
    private let moving = NSLock()

    private enum Stage {
        case idle
        case moving
        /// What is left is moved between two commits.
        case almostWhole
    }
    private let stage = Mutex(Stage.idle)

    /// Frames that a commit moves itself: a quarter of a millisecond, without its synchronizations.
    private static let frameCountLeft = 128
    /// Passes before the rest is moved whatever its length.
    private static let passCountMax = 8
    /// The log may grow to so many times the length at which it is moved, before a commit waits for a pass.
    private static let growthMax = 8

    /// - Parameters:
    ///   - connection: Writes, and nothing else uses it.
    ///   - reader: The same of one that reads.
    init(_ connection: Connection, pinnedBy reader: Connection) {
        self.connection = connection
        self.reader = reader
    }

    /// Call after each commit, inside the connection that commits.
    ///
    /// - Throws: `StoreError.lostDurability` when a synchronization failed.
    func advance(_ writer: Connection, largerThan byteCount: Int) throws {
        let isLong = writer.logByteCount >= byteCount
        let found = stage.withLock { stage in
            defer {
                switch stage {
                case .idle: if isLong { stage = .moving }
                // Where nothing was left, the log has begun anew with this commit.
                case .almostWhole: stage = .idle
                case .moving: break
                }
            }
            return stage
        }
        guard isLong else { return }
        switch found {
        case .idle:
            running.enter()
            BackgroundThread.start("log") { [self] in
                run(beside: writer)
                running.leave()
            }
        case .almostWhole: return try pausing { try writer.moveLog(largerThan: 0) }
        case .moving: break
        }
        // A disk that is slower than what is committed must not be filled.
        guard writer.logByteCount >= Self.growthMax * byteCount else { return }
        try pausing { try writer.moveLog(largerThan: 0) }
    }

    private func run(beside writer: Connection) {
        var isMoved = false
        do {
            for _ in 0..<Self.passCountMax {
                // Another connection moves the log; the next commit that finds it long begins anew.
                guard let leftCount = try pausing({ try pass(beside: writer) }) else { break }
                isMoved = true
                if leftCount <= Self.frameCountLeft { break }
            }
        } catch {
            // A full disk, or a lost synchronization, which the next one tells.
            isMoved = false
        }
        stage.withLock { [isMoved] in $0 = isMoved ? .almostWhole : .idle }
    }

    /// What was lost is lost to the connection that writes, too: nothing more that it commits is called durable.
    ///
    /// - Returns: How many frames are left; `nil` when nothing was moved.
    func pass(beside writer: Connection) throws -> Int? {
        try reader.exclusively {
            try writer.betweenCommits { try reader.beginSnapshot() }
            defer { reader.rollBack() }
            try writer.synchronize()
            do {
                return try connection.exclusively { try connection.moveLogBesideWriter() }
            } catch let error as StoreError {
                if case .lostDurability = error { writer.lose(error) }
                throw error
            }
        }
    }

    /// Runs what must not meet a pass under way.
    func pausing<Result>(_ body: () throws -> Result) rethrows -> Result { try moving.withLock(body) }

    /// Waits for the passes that a commit has begun.
    func wait() { running.wait() }

    /// Waits for a pass under way.
    func close() {
        wait()
        reader.close()
        connection.close()
    }
}
