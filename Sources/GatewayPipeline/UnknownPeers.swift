import GateRecords
import GateSteps
import GateVocabulary

/// Peers that match no caller, by uid.
typealias UnknownPeerMeter = OccurrenceMeter<UInt32>

extension OccurrenceMeter<UInt32> {
    /// Uids counted apart. A process can make many in a user namespace, all of which read 65534; the kernel gives
    /// no user the uid 2³²−1 (credentials(7), setreuid(2)), which stands for all the others.
    static func unknownPeers() -> UnknownPeerMeter { UnknownPeerMeter(keyCountMax: 1024, overflow: .max) }
}

extension Gateway {
    /// Records how often a uid that belongs to no caller tried the socket.
    ///
    /// - Parameter peer: The one that tried last, as far as it is known.
    func recordUnknownPeer(_ count: UnknownPeerMeter.Count, last peer: Peer?, in lane: EngineLane = .general)
    {
        engine.submit(in: lane, refused: { [unknownPeers] _ in unknownPeers.refused(count) }) {
            [unknownPeers] batch in
            let entry = UnknownPeerEntry(
                user: count.key, count: count.count, group: peer?.credentials.groupID,
                process: peer.map { Int($0.credentials.processID) }, listener: peer?.listener)
            try batch.step { try $0.record(entry, at: $0.now()) }
            return { _ in unknownPeers.committed(count) }
        }
    }

    /// Records the counts that are in no entry yet, once their minute is over.
    ///
    /// - Parameter isLast: Before the stop: every count, whatever its minute.
    package func recordCounts(isLast: Bool = false) {
        let uptime = dependencies.clock.reading().uptime
        // The last go before the stop, which is in that lane too.
        let lane: EngineLane = isLast ? .security : .general
        for count in unknownPeers.takeDue(at: uptime, isLast: isLast) {
            recordUnknownPeer(count, last: nil, in: lane)
        }
        for count in explanations.takeDue(at: uptime, isLast: isLast) {
            recordExplanations(count, in: lane)
        }
    }
}
