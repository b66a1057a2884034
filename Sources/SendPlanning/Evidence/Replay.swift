import BundleModel
package import CanonicalJSON
package import CompliancePolicy
import GateRecords
package import GateVocabulary

/// What deciding again on the recorded facts gave.
package enum ReplayResult: Hashable, Sendable {
    /// Every decision, its trace and the overall answer are byte for byte what was recorded.
    case same
    case differs([ReplayDifference])
    case notReplayable(ReplayObstacle)
}

/// One member that came out differently.
package struct ReplayDifference: Hashable, Sendable {
    /// In the entry, e.g. `/deliveries/0/decision/trace/6`.
    package var pointer: JSONPointer
    /// `nil` where there is no such member.
    package var recorded: JSONValue?
    package var replayed: JSONValue?

    package init(pointer: JSONPointer, recorded: JSONValue?, replayed: JSONValue?) {
        self.pointer = pointer
        self.recorded = recorded
        self.replayed = replayed
    }
}

/// Why an entry cannot be decided again.
package enum ReplayObstacle: Error, Hashable, Sendable {
    /// Entries of the kind decide nothing: key events, consents, start and stop.
    case decidesNothing(kind: String)
    case unreadable(EntryError)
    /// No archived bundle has this digest.
    case policyUnknown(PolicyDigest)
    /// The other bundle asks for facts that were not looked up, or looked up differently, on that day.
    case factsNotRecorded(TypeID, [String])
    /// The other bundle checks the type's params by another schema, and params are not recorded.
    case schemaChanged(TypeID)
    /// The other bundle has other texts for the type, and sizes were measured on the old ones.
    case textsChanged(TypeID)
}

extension ReplayObstacle: CustomStringConvertible {
    package var description: String {
        switch self {
        case .decidesNothing(let kind): "an entry of kind `\(kind)` decides nothing"
        case .unreadable(let error): "\(error)"
        case .policyUnknown(let digest): "no archived policy has the digest \(digest)"
        case .factsNotRecorded(let type, let facts):
            "for `\(type)` the other policy needs facts that were not recorded: \(facts.joined(separator: ", "))"
        case .schemaChanged(let type): "the params of `\(type)` have another schema in the other policy"
        case .textsChanged(let type):
            "`\(type)` has other texts in the other policy, so its size is not known"
        }
    }
}

/// Decides every delivery of an entry again, with the policy and the gates of its day; or as another policy would have, on the same
/// facts and by the same gates: of what a later gate would have read nothing was recorded.
///
/// - Parameters:
///   - bytes: One entry of any kind, exactly as recorded.
///   - policies: The archived bundles by digest: what the facts were gathered for.
///   - other: The bundle that is asked what it would have done; `nil` for that of the day.
///   - gates: Where the gates after the first thirteen come from.
/// - Returns: For another bundle ``ReplayResult/differs(_:)`` with what would have been otherwise; not replayable where the answer
///   would rest on something the entry does not hold.
package func replay(
    _ bytes: [UInt8], policies: (PolicyDigest) throws -> CompiledPolicy?, with other: CompiledPolicy? = nil,
    of gates: any LaterGates.Type = BuiltGates.self
) rethrows -> ReplayResult {
    let recorded: RecordedDecisions
    switch RecordedDecisions.read(bytes, gates) {
    case .success(let found): recorded = found
    case .failure(let obstacle): return .notReplayable(obstacle)
    }
    if let other, recorded.policy == other.digest { return recorded.replayed(under: other) }
    guard let policy = try policies(recorded.policy) else {
        return .notReplayable(.policyUnknown(recorded.policy))
    }
    guard let other else { return recorded.replayed(under: policy) }
    if let obstacle = obstacle(to: recorded.request, from: policy, to: other) {
        return .notReplayable(obstacle)
    }
    // The other bundle may choose a form that was never composed. Only the decision can say which.
    if recorded.lacksSizes(under: other) {
        return .notReplayable(.factsNotRecorded(recorded.request.type, ["sizes"]))
    }
    return recorded.replayed(under: other)
}

/// What keeps facts gathered for one bundle from answering for another.
private func obstacle(
    to request: AttestedRequest, from policy: CompiledPolicy, to other: CompiledPolicy
) -> ReplayObstacle? {
    // A type that only one of them knows: unknown needs nothing, so leaving the registry can be asked about.
    guard let type = other.type(request.type), let needs = other.needs(for: request) else { return nil }
    guard let oldType = policy.type(request.type), let oldNeeds = policy.needs(for: request) else {
        return .factsNotRecorded(request.type, ["everything: the type was not in the registry"])
    }
    if type.params != oldType.params { return .schemaChanged(request.type) }
    var missing: [String] = []
    if needs.purpose != oldNeeds.purpose { missing.append("consent") }
    if let purpose = needs.specialPurpose, purpose != oldNeeds.specialPurpose {
        missing.append("purpose_consent")
    }
    if let purpose = needs.ownRequestPurpose, purpose != oldNeeds.ownRequestPurpose {
        missing.append("own_request")
    }
    if let param = needs.dedupeBy,
        param != oldNeeds.dedupeBy || needs.dedupeScope != oldNeeds.dedupeScope
    {
        missing.append("repetition")
    }
    if !needs.withheldFrom.isEmpty, needs.withheldFrom != oldNeeds.withheldFrom { missing.append("withheld") }
    if type.timing != oldType.timing { missing.append("due") }
    if let window = needs.typeWindowSeconds, window != oldNeeds.typeWindowSeconds {
        missing.append("type_count")
    }
    if let window = needs.categoryWindowSeconds, window != oldNeeds.categoryWindowSeconds {
        missing.append("category_count")
    }
    if let window = needs.everythingWindowSeconds,
        window != oldNeeds.everythingWindowSeconds || needs.uncounted != oldNeeds.uncounted
    {
        missing.append("everything_count")
    }
    if needs.typePreferences, !oldNeeds.typePreferences { missing.append("account_type_preference") }
    if needs.deviceKey, !oldNeeds.deviceKey { missing.append("device_key") }
    if needs.sendingHours != oldNeeds.sendingHours { missing.append("quiet_hours") }
    if type.category != oldType.category { missing.append("account_preference") }
    if !missing.isEmpty { return .factsNotRecorded(request.type, missing) }
    if !haveSameTexts(type, in: other, as: oldType, in: policy) { return .textsChanged(request.type) }
    return nil
}

/// Whether both bundles would compose payloads of the same size.
private func haveSameTexts(
    _ type: NotificationType, in policy: CompiledPolicy, as oldType: NotificationType,
    in oldPolicy: CompiledPolicy
) -> Bool {
    let shown = { (type: NotificationType) -> [String?] in
        [
            type.deepLink?.text, type.androidChannel, type.apnsCategory?.text, type.sound,
            type.badge.map(String.init),
            type.alertType.map(String.init), "\(type.hasAlertRecord)", type.interruption.rawValue,
            "\(type.collapses)",
            type.linkPrefixes.map(\.text).joined(separator: " "),
        ]
    }
    guard shown(type) == shown(oldType), type.tier == oldType.tier,
        policy.bundle.brand == oldPolicy.bundle.brand, policy.languages == oldPolicy.languages,
        policy.bundle.sender == oldPolicy.bundle.sender,
        Set(policy.bundle.messages.keys) == Set(oldPolicy.bundle.messages.keys)
    else { return false }
    for (locale, messages) in policy.bundle.messages {
        guard let old = oldPolicy.bundle.messages[locale], old.fallback == messages.fallback,
            old.generic[type.tier] == messages.generic[type.tier],
            old.unsubscribeWords == messages.unsubscribeWords,
            old.texts[oldType.messageKey] == messages.texts[type.messageKey]
        else { return false }
    }
    return true
}

/// The decisions of one entry, whatever its kind, with what they were made from.
private struct RecordedDecisions {
    var policy: PolicyDigest
    var request: AttestedRequest
    var decisions: [(facts: Facts, decision: Decision)]
    /// Whether the entry also answers for all of them together.
    var hasOverall: Bool
    /// The later gates that there are. Each decision is asked as many of them as it was on its day.
    let gates: any LaterGates.Type

    static func read(
        _ bytes: [UInt8], _ gates: any LaterGates.Type
    ) -> Result<RecordedDecisions, ReplayObstacle> {
        do throws(EntryError) {
            // The kinds that decide differ in their first member, and no other kind starts like the second.
            let isRedecision = bytes.starts(with: "{\"cause\":\"".utf8)
            let found =
                isRedecision
                ? Self(try RedecisionEntry.read(bytes).entry, gates)
                : Self(try SendEntry.read(bytes).entry, gates)
            if let newest = found.decisions.map(\.decision.trace.revision).max(), newest > gates.newest {
                throw .newer(gateCount: Int(newest.gateCount))
            }
            return .success(found)
        } catch {
            guard case .otherKind(let kind) = error else { return .failure(.unreadable(error)) }
            // An entry that starts like one kind and says it is the other is neither.
            let decides = kind == SendEntry.kind.text || kind == RedecisionEntry.kind.text
            return .failure(decides ? .unreadable(error) : .decidesNothing(kind: kind))
        }
    }

    private init(_ entry: SendEntry, _ gates: any LaterGates.Type) {
        self.gates = gates
        policy = entry.policy
        request = entry.attested
        hasOverall = true
        decisions = entry.deliveries.map { ($0.facts, $0.decision) }
    }

    private init(_ entry: RedecisionEntry, _ gates: any LaterGates.Type) {
        self.gates = gates
        policy = entry.policy
        request = entry.request
        hasOverall = false
        decisions = [(entry.facts, entry.decision)]
    }

    /// Where a decision stands in its entry.
    private func place(of position: Int) -> JSONPointer {
        JSONPointer(hasOverall ? ["deliveries", String(position), "decision"] : ["decision"])
    }

    /// Whether an unknown size keeps `policy` from deciding what it otherwise would promise.
    func lacksSizes(under policy: CompiledPolicy) -> Bool {
        decisions.contains { facts, decision in
            let fresh = decide(
                request, given: facts, under: policy, asking: decision.trace.revision, of: gates)
            let missing = GateResult.fail(.factMissing, .size)
            return fresh.trace[.size] == missing && decision.trace[.size] != missing
        }
    }

    func replayed(under policy: CompiledPolicy) -> ReplayResult {
        var differences: [ReplayDifference] = []
        var again: [Decision] = []
        again.reserveCapacity(decisions.count)
        for (position, (facts, decision)) in decisions.enumerated() {
            let fresh = decide(
                request, given: facts, under: policy, asking: decision.trace.revision, of: gates
            ).inWords(of: decision)
            again.append(fresh)
            if Self.bytes(of: fresh) != Self.bytes(of: decision) {
                Self.compare(
                    .object(decision.json), .object(fresh.json), at: place(of: position), into: &differences)
            }
        }
        if hasOverall, !differences.isEmpty {
            let (old, new) = (
                OverallAnswer.best(of: decisions.map(\.decision)), OverallAnswer.best(of: again)
            )
            func compare(_ name: String, _ recorded: String?, _ replayed: String?) {
                guard recorded != replayed else { return }
                differences.append(
                    ReplayDifference(
                        pointer: .root.appending(name), recorded: recorded.map { .string($0) },
                        replayed: replayed.map { .string($0) }))
            }
            compare("outcome", old.outcome.name, new.outcome.name)
            compare("reason", old.reason.rawValue, new.reason.rawValue)
            compare("detail", old.detail?.rawValue, new.detail?.rawValue)
        }
        return differences.isEmpty ? .same : .differs(differences)
    }

    /// The bytes two decisions are compared by.
    private static func bytes(of decision: Decision) -> [UInt8] {
        var json = CanonicalWriter()
        decision.write(to: &json)
        return json.finish()
    }

    /// Every leaf in which two values differ.
    private static func compare(
        _ recorded: JSONValue?, _ replayed: JSONValue?, at pointer: JSONPointer,
        into differences: inout [ReplayDifference]
    ) {
        switch (recorded, replayed) {
        case (.object(let left)?, .object(let right)?):
            for key in Set(left.keys).union(right.keys).sorted(by: CodeUnits.precedes) {
                compare(left[key], right[key], at: pointer.appending(key), into: &differences)
            }
        case (.array(let left)?, .array(let right)?) where left.count == right.count:
            for index in left.indices {
                compare(left[index], right[index], at: pointer.appending(index), into: &differences)
            }
        default:
            if recorded != replayed {
                differences.append(ReplayDifference(pointer: pointer, recorded: recorded, replayed: replayed))
            }
        }
    }
}
