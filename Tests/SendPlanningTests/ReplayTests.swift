import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateVocabulary
import SendPlanning
import Testing

@Suite struct ReplayTests {
    @Test func `every case of the bundle replays byte for byte`() throws {
        #expect(RepositoryBundle.cases.count > 50)
        for example in RepositoryBundle.cases {
            let bytes = try Sample.entry(example).bytes(index: 0, time: Sample.now)
            #expect(replay(bytes, policies: RepositoryBundle.digests) == .same, "\(example.name)")
        }
    }

    @Test func `one decision changed in any way is found`() throws {
        for example in RepositoryBundle.cases {
            var entry = Sample.entry(example)
            let honest = entry.deliveries[0].decision
            var lies: [Decision] = []
            for form in BodyForm.allCases where form != honest.form {
                var lie = honest
                lie.form = form
                lies.append(lie)
            }
            for gate in Gate.allCases {
                var lie = honest
                lie.trace[gate] = honest.trace[gate].verdict == .pass ? .notApplicable : .pass
                lies.append(lie)
            }
            var noted = honest
            noted.notes.formSymmetricDifference(.mandatoryPassed)
            lies.append(noted)
            var louder = honest
            louder.interruption = honest.interruption == .critical ? .active : .critical
            lies.append(louder)
            var later = honest
            if let notBefore = honest.notBefore {
                later.notBefore = notBefore.advanced(byMilliseconds: 1)
                lies.append(later)
            }
            for lie in lies {
                entry.deliveries[0].decision = lie
                let result = replay(
                    try entry.bytes(index: 0, time: Sample.now), policies: RepositoryBundle.digests)
                guard case .differs(let differences) = result else {
                    Issue.record("\(example.name): a changed decision gave \(result)")
                    continue
                }
                #expect(differences.allSatisfy { $0.recorded != $0.replayed })
            }
        }
    }

    @Test func `one fact removed is found wherever it mattered`() throws {
        var found = 0
        for example in RepositoryBundle.cases {
            let entry = Sample.entry(example)
            for name in Facts.names where example.facts.json[name] != nil {
                var changed = entry
                changed.deliveries[0].facts = example.facts.removing(name)!
                let fresh = decide(
                    example.request, given: changed.deliveries[0].facts, under: RepositoryBundle.policy)
                let result = replay(
                    try changed.bytes(index: 0, time: Sample.now), policies: RepositoryBundle.digests)
                #expect(
                    (result == .same) == (fresh == entry.deliveries[0].decision), "\(example.name), \(name)")
                if result != .same { found += 1 }
            }
        }
        #expect(found > 200, "only \(found) removals mattered")
    }

    @Test func `a difference says where, what was recorded and what came out`() throws {
        let example = try #require(RepositoryBundle.cases.first)
        var entry = Sample.entry(example)
        entry.deliveries[0].facts.consent = ConsentFact(state: .withdrawn)
        let result = replay(try entry.bytes(index: 0, time: Sample.now), policies: RepositoryBundle.digests)
        #expect(
            result
                == .differs([
                    ReplayDifference(
                        pointer: JSONPointer(["deliveries", "0", "decision", "detail"]),
                        recorded: "never_asked",
                        replayed: "withdrawn"),
                    ReplayDifference(
                        pointer: JSONPointer(["deliveries", "0", "decision", "trace", "6"]),
                        recorded: "no_gdpr_consent:never_asked", replayed: "no_gdpr_consent:withdrawn"),
                    ReplayDifference(
                        pointer: JSONPointer(["detail"]), recorded: "never_asked", replayed: "withdrawn"),
                ]))
    }

    @Test func `what cannot be replayed says why`() throws {
        let bytes = try Sample.entry(RepositoryBundle.cases[0]).bytes(index: 0, time: Sample.now)
        #expect(
            replay(bytes, policies: { _ in nil })
                == .notReplayable(.policyUnknown(RepositoryBundle.policy.digest)))
        #expect(
            replay(
                Array(#"{"index":0,"kind":"start","time":0,"v":1}"#.utf8), policies: RepositoryBundle.digests)
                == .notReplayable(.decidesNothing(kind: "start")))
        guard case .notReplayable(.unreadable) = replay(Array("{}".utf8), policies: RepositoryBundle.digests)
        else {
            return #expect(Bool(false), "an empty object was replayed")
        }
    }

    // MARK: Another policy

    static func with(_ other: CompiledPolicy, _ example: PolicyCase) throws -> ReplayResult {
        replay(
            try Sample.entry(example).bytes(index: 0, time: Sample.now), policies: RepositoryBundle.digests,
            with: other)
    }

    static func example(_ type: String, _ outcome: Outcome) throws -> PolicyCase {
        try #require(
            RepositoryBundle.cases.first {
                $0.request.type == TypeID(type) && $0.expected.outcome == outcome
                    && $0.request.channel == .push
            })
    }

    @Test func `the same policy by another name changes nothing`() throws {
        let renamed = RepositoryBundle.policy("bundle.yaml", ["version"], 2)
        #expect(renamed.digest != RepositoryBundle.policy.digest)
        for example in RepositoryBundle.cases {
            let result = try Self.with(renamed, example)
            #expect(
                result == .same || RepositoryBundle.policy.type(example.request.type) == nil,
                "\(example.name): \(result)")
        }
    }

    @Test func `a stricter rule shows whom it would have stopped`() throws {
        // Quiet hours now also drop what used to wait.
        let stricter = RepositoryBundle.policy("categories.yaml", ["transactional", "quiet_hours"], "drop")
        let deferred = try #require(
            RepositoryBundle.cases.first { $0.expected.reason == .quietHoursDeferred })
        guard case .differs(let differences) = try Self.with(stricter, deferred) else {
            return #expect(Bool(false), "nothing differs")
        }
        #expect(
            differences.contains(
                ReplayDifference(pointer: JSONPointer(["outcome"]), recorded: "defer", replayed: "suppress")))
        #expect(
            differences.contains(
                ReplayDifference(
                    pointer: JSONPointer(["reason"]), recorded: "quiet_hours_deferred",
                    replayed: "quiet_hours_dropped")))
    }

    @Test func `another schema or another text is not replayable`() throws {
        let example = try Self.example("transaction.remittance_sent", .forward)
        let type = example.request.type
        let file = "types/\(type).yaml"
        #expect(
            try Self.with(RepositoryBundle.policy(file, ["params", "note"], ["optional": "uuid"]), example)
                == .notReplayable(.schemaChanged(type)))
        #expect(
            try Self.with(
                RepositoryBundle.policy("messages/nb.yaml", [type.text, "title"], "Sendt!"), example)
                == .notReplayable(.textsChanged(type)))
        #expect(
            try Self.with(RepositoryBundle.policy(file, ["deep_link"], "drop://elsewhere"), example)
                == .notReplayable(.textsChanged(type)))
        // The texts of another type are none of its business.
        #expect(
            try Self.with(
                RepositoryBundle.policy("messages/nb.yaml", ["promo.referral", "title"], "Verv!"), example)
                == .same)
    }

    @Test func `a policy that asks for what was not looked up is not replayable`() throws {
        let example = try Self.example("transaction.remittance_sent", .forward)
        let type = example.request.type
        guard
            case .notReplayable(.factsNotRecorded(type, let missing)) = try Self.with(
                RepositoryBundle.policy("types/\(type).yaml", ["purpose"], "account_information"), example)
        else { return #expect(Bool(false), "a consent nobody looked up was taken as known") }
        #expect(missing == ["purpose_consent"])
    }

    @Test func `a policy that looks for repetitions elsewhere is not replayable`() throws {
        let example = try Self.example("alert.payment_processing", .defer)
        let type = example.request.type
        let file = "types/\(type).yaml"
        let unknown = ReplayResult.notReplayable(.factsNotRecorded(type, ["repetition"]))
        // Among one caller's sends, or by another param; and not where it is not looked for any more.
        #expect(try Self.with(RepositoryBundle.policy(file, ["dedupe_scope"], "caller"), example) == unknown)
        #expect(try Self.with(RepositoryBundle.policy(file, ["dedupe_scope"], "type"), example) == .same)
        var documents = RepositoryBundle.documents
        var page = try #require(documents[file]?.json.objectValue)
        (page["dedupe_by"], page["dedupe_scope"]) = (nil, nil)
        documents[file] = PolicyNode(json: .object(page))
        #expect(try Self.with(RepositoryBundle.compiled(documents), example) == .same)
    }

    @Test func `a policy that chooses a form nobody composed is not replayable`() throws {
        let example = try Self.example("transfer.sent", .forward)
        var entry = Sample.entry(example)
        entry.deliveries[0].facts.sizes = PayloadSizes(sealed: 1480)
        let bytes = try entry.bytes(index: 0, time: Sample.now)
        #expect(replay(bytes, policies: RepositoryBundle.digests) == .same)
        let type = example.request.type
        let generic = RepositoryBundle.policy(
            "types/\(type).yaml", ["channels", "push"], ["body": "generic"])
        #expect(
            replay(bytes, policies: RepositoryBundle.digests, with: generic)
                == .notReplayable(.factsNotRecorded(type, ["sizes"])))
    }

    @Test func `a type that is switched off would be refused`() throws {
        let example = try Self.example("transaction.remittance_sent", .forward)
        var documents = RepositoryBundle.documents
        let file = "types/\(example.request.type).yaml"
        guard case .object(var type) = documents[file]!.json else {
            preconditionFailure("a type is a mapping")
        }
        type["enabled"] = false
        type["disabled_hint"] = "gone"
        documents[file] = PolicyNode(json: .object(type))
        guard case .differs(let differences) = try Self.with(RepositoryBundle.compiled(documents), example)
        else {
            return #expect(Bool(false), "nothing differs")
        }
        #expect(
            differences.contains(
                ReplayDifference(
                    pointer: JSONPointer(["reason"]), recorded: "allowed", replayed: "type_disabled")))
    }
}
