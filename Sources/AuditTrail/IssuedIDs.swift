import CanonicalJSON
package import GateRecords
import GateVocabulary

/// Follows the ids along a trail that the gateway gives, or takes from a caller, only once.
///
/// A `send_id` and a `message_id` are drawn for one send, and are never drawn again. The `id_tag` of a request marks the caller's own
/// id: a repeat within the time that ids are kept is answered from the first entry and leaves none, and other content is refused
/// (``Reason/bindsID``: a send of a misspelled type or param leaves its id free; of a reason that only a newer build knows, nobody
/// can say here whether it binds). The same holds for the carrier's id of a reply. A clock that is put right may have let a gateway
/// forget what callers chose, and nothing that was drawn.
///
/// Ids are remembered for ``windowMilliseconds``, the shortest time for which a gateway may keep them, so an auditor's memory is
/// bounded: about 100 bytes for each id of at most twice that time, of which a send has three at most and one more for each
/// destination beyond the first.
package struct IssuedIDs: Sendable {
    /// An entry has an id that an entry before it has.
    package struct Break: Hashable, Sendable {
        package var index: UInt64
        /// The member, e.g. `send_id`.
        package var member: String
        package var earlierIndex: UInt64

        package var message: String {
            "entry \(index) has the same `\(member)` as entry \(earlierIndex), which no gateway gives or takes twice"
        }

        /// The next step.
        package static let hint =
            "one of the two was copied or made up; keep this copy, and ask the operator who wrote these entries"
    }

    package static let windowMilliseconds = Retention.daysMin * 86_400_000

    private struct ID: Hashable {
        let member: Member
        /// The caller that chose the id; empty for an id that the gateway drew.
        let caller: String
        let value: Tag
    }

    private enum Member: String {
        case sendID = "send_id"
        case messageID = "message_id"
        case idTag = "id_tag"
        case replyTag = "reply"

        var name: String { self == .replyTag ? Member.idTag.rawValue : rawValue }

        /// Whether the gateway drew it, so that no clock makes it free again.
        var isDrawn: Bool { self == .sendID || self == .messageID }
    }

    private typealias Issue = (index: UInt64, at: Instant)

    /// Ids seen since ``windowStart``, and those of the window before. Rotating the two tables drops old ids without a search for
    /// them.
    private var recent: [ID: Issue] = [:]
    private var older: [ID: Issue] = [:]
    private var windowStart: Instant?
    private var newest: Instant?

    package init() {}

    /// - Parameter entry: The next one.
    /// - Returns: The first id that was issued before.
    package mutating func follow(_ entry: TrailEntry) -> Break? {
        switch entry.kind {
        case .send:
            rotate(at: entry.time)
            var found = issue(.sendID, entry.members["send_id"], in: entry)
            for delivery in entry.members["deliveries"]?.arrayValue ?? [] {
                found = found ?? issue(.messageID, delivery["message_id"], in: entry)
            }
            let reason = entry.members["reason"]?.stringValue.flatMap(Reason.init(rawValue:))
            return found
                ?? issue(
                    .idTag, entry.members["request"]?["id_tag"], of: entry.members["caller"], in: entry,
                    isKept: reason?.bindsID ?? false)
        case .reply:
            rotate(at: entry.time)
            return issue(.replyTag, entry.members["id_tag"], of: entry.members["caller"], in: entry)
        case .clock:
            recent = recent.filter { $0.key.member.isDrawn }
            older = older.filter { $0.key.member.isDrawn }
            // The window goes on by the clock that is right.
            if let start = windowStart, let newest {
                windowStart = entry.time.advanced(byMilliseconds: start.milliseconds - newest.milliseconds)
            }
            newest = entry.time
            return nil
        default: return nil
        }
    }

    private mutating func rotate(at now: Instant) {
        newest = now
        guard let start = windowStart, now.milliseconds - start.milliseconds <= Self.windowMilliseconds else {
            (older, recent, windowStart) = (recent, [:], now)
            return
        }
    }

    private mutating func issue(
        _ member: Member, _ value: JSONValue?, of caller: JSONValue? = nil, in entry: TrailEntry,
        isKept: Bool = true
    ) -> Break? {
        // A UUID has the same digits as a tag, and hyphens.
        guard let value = value?.stringValue.flatMap({ Tag(hexadecimal: $0.filter { $0 != "-" }) }) else {
            return nil
        }
        let id = ID(member: member, caller: caller?.stringValue ?? "", value: value)
        if let earlier = recent[id] ?? older[id],
            member.isDrawn
                || entry.time.milliseconds - earlier.at.milliseconds < Self.windowMilliseconds
        {
            return Break(index: entry.index, member: member.name, earlierIndex: earlier.index)
        }
        if isKept { recent[id] = (entry.index, entry.time) }
        return nil
    }
}
