import AuditTrail
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import GateRecords
import GateSteps
import GateVocabulary
import SendPlanning

// What the auditor's commands do with a trail whose oldest entries were pruned (decision SG-0076).

extension TrailReport {
    /// What a command says of a trail that does not have all entries; `nil` of one that has.
    var prunedRemark: String? {
        guard let snapshot else { return nil }
        let whole =
            firstWhole.map {
                "from entry \($0.index), \($0.time.rfc3339), on every entry is held against all before it"
            }
            ?? "every entry may rest on one that is gone"
        return "the entries before \(snapshot.size) were pruned; \(whole)"
    }

    /// The members that say the same to a machine.
    var prunedMembers: JSONObject {
        guard let snapshot else { return JSONObject() }
        var object: JSONObject = ["pruned_before": .integer(Int64(snapshot.size))]
        if let firstWhole { object["whole_from"] = .integer(Int64(firstWhole.index)) }
        return object
    }
}

extension EvidenceFold {
    /// ``follow(_:policies:)``, whose errors name the entry.
    mutating func followed(
        by entry: VerifiedEntry, policies: (PolicyDigest) throws -> CompiledPolicy?
    ) throws -> (differences: [ReplayDifference], objection: ActObjection?) {
        do {
            return try follow(entry, policies: policies)
        } catch let error as CommandFailure {
            throw error
        } catch {
            throw CommandFailure(
                "entry \(entry.index) cannot be applied: \(error)",
                hint: "run `sendgate audit verify` on this copy", status: .foundDifference)
        }
    }
}

/// From where on a trail can be counted: what the first entries after the pruned ones say may rest on what is gone.
struct CountableEntries {
    /// As asked for; `nil` is from the first that can be counted.
    let since: Instant?
    /// Whether an entry counts by itself, without those before it.
    let standsAlone: Bool
    private(set) var first: (index: UInt64, time: Instant)?
    private var newestBefore: Instant?

    init(since: Instant?, standsAlone: Bool) {
        self.since = since
        self.standsAlone = standsAlone
    }

    /// Whether an entry is counted, and not only followed.
    ///
    /// - Throws: `CommandFailure` where entries since then are gone.
    mutating func counts(_ entry: VerifiedEntry) throws -> Bool {
        guard first == nil else { return true }
        let time = entry.entry?.time ?? .longAgo
        guard entry.standing == .whole || standsAlone && entry.standing == .afterPruned else {
            newestBefore = time
            return false
        }
        first = (entry.index, time)
        try requireAll()
        return true
    }

    private func requireAll() throws {
        guard let since, let newestBefore, since <= newestBefore else { return }
        throw CommandFailure(
            "what was recorded up to \(newestBefore.rfc3339) was pruned, or rests on what was",
            hint: first.map { "ask for what there is: `--since \($0.time.rfc3339)`" }
                ?? "nothing of this trail can be counted yet")
    }

    /// What is said of a report without a beginning; `nil` where all entries were counted.
    func remark() throws -> String? {
        if first == nil { try requireAll() }
        guard let newestBefore else { return nil }
        return first.map {
            "counted from entry \($0.index), \($0.time.rfc3339), on: what is older was pruned, or rests on what was"
        }
            ?? "nothing is counted: what was recorded up to \(newestBefore.rfc3339) was pruned, or rests on what was"
    }
}
