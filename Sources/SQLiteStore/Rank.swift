import GateRecords
import GateSteps
import GateVocabulary

extension SendEventKind: StoredCode {}
extension OutboxRecord.State: StoredCode {}

/// The order in which waiting messages go: security before everything, then by tier. Each rank has queues
/// of its own, so no flood in one can hold up another.
enum Rank {
    private static let perLane = Int64(Tier.allCases.count)

    static func of(_ category: Category, _ tier: Tier) -> Int64 {
        (category == .security ? 0 : perLane) + tier.code
    }

    /// The ranks of a lane, first to go first.
    static func all(in lane: DeliveryLane) -> Range<Int64> {
        switch lane {
        case .security: 0..<perLane
        case .general: perLane..<2 * perLane
        }
    }
}
