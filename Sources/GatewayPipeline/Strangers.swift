import AuditTrail
import CanonicalJSON
import GateVocabulary
import Synchronization

/// Peers that match nothing, counted so that knocking cannot fill the trail: one entry per uid and minute,
/// with how often it was in the minute before.
final class StrangerLedger: Sendable {
    /// What an entry says.
    struct Knock: Sendable, Hashable {
        var userID: UInt32
        /// Refusals of this uid since its last entry, this one included.
        var count: Int
    }

    /// Uids remembered at once; a process can make many in a user namespace, all of which read 65534.
    private static let userCountMax = 1024
    private static let intervalMilliseconds: Int64 = 60_000

    private struct Visit {
        var recordedAt: Instant
        var unrecordedCount = 0
    }
    private let visits = Mutex<[UInt32: Visit]>([:])

    /// - Returns: What to record now; `nil` when this uid's minute has its entry.
    func knock(_ user: UInt32, at now: Instant) -> Knock? {
        visits.withLock { visits in
            if var visit = visits[user],
                now.milliseconds - visit.recordedAt.milliseconds < Self.intervalMilliseconds
            {
                visit.unrecordedCount += 1
                visits[user] = visit
                return nil
            }
            if visits.count >= Self.userCountMax, visits[user] == nil {
                visits = visits.filter {
                    now.milliseconds - $0.value.recordedAt.milliseconds < Self.intervalMilliseconds
                }
                if visits.count >= Self.userCountMax { return nil }
            }
            let count = (visits[user]?.unrecordedCount ?? 0) + 1
            visits[user] = Visit(recordedAt: now)
            return Knock(userID: user, count: count)
        }
    }
}

/// Records that somebody nobody knows tried the socket.
struct StrangerOperation: EngineOperation {
    let peer: Peer
    let knock: StrangerLedger.Knock

    var caller: CallerName? { nil }
    var lane: EngineLane { .general }

    func perform(in batch: BatchContext) throws -> @Sendable () -> Void {
        try batch.record(
            .unknownPeer, at: batch.now(),
            [
                "uid": .integer(Int64(knock.userID)), "gid": .integer(Int64(peer.credentials.groupID)),
                "pid": .integer(Int64(peer.credentials.processID)),
                "listener": .integer(Int64(peer.listener)),
                "count": .integer(Int64(knock.count)),
            ])
        return {}
    }

    /// Nothing waits for this entry; what was not recorded is in the next minute's count.
    func refuse(_ failure: EngineFailure) {}
}
