/// An entry that cannot be read, or would not fit.
@usableFromInline
package enum EntryError: Error, Hashable, Sendable {
    /// The bytes depart from the one spelling an entry has; `offset` is where, in bytes.
    case malformed(offset: Int, expected: String)
    /// Well-formed, but not what the rest of the entry gives; `what` names the member.
    case contradictory(what: String)
    /// Both counts are bytes.
    case tooLarge(byteCount: Int, byteCountMax: Int)
    /// The entry of a build with more gates than this one.
    case newer(gateCount: Int)
    /// An entry of another kind.
    case otherKind(String)
}

extension EntryError: CustomStringConvertible {
    @usableFromInline package var description: String {
        switch self {
        case .malformed(let offset, let expected): "not an entry: expected \(expected) at byte \(offset)"
        case .contradictory(let what): "not an entry: `\(what)` is not what the rest of it gives"
        case .tooLarge(let count, let most):
            "the entry has \(count) bytes; an entry bundle carries at most \(most)"
        case .newer(let count): "\(GateRevision.newer(count)); \(GateRevision.newerHint)"
        case .otherKind(let kind): "an entry of kind `\(kind)`"
        }
    }
}
