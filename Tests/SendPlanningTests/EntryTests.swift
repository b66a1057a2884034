import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateTestKit
import GateVocabulary
import SendPlanning
import Testing

@Suite struct SendEntryTests {
    @Test func `an entry reads back as it was written, for every case of the bundle`() throws {
        #expect(RepositoryBundle.cases.count > 50)
        for (position, example) in RepositoryBundle.cases.enumerated() {
            let entry = Sample.entry(example)
            let bytes = try entry.bytes(index: UInt64(position), time: Sample.now)
            #expect(CanonicalJSON.isCanonical(bytes))
            let found = try SendEntry.read(bytes)
            #expect(found.index == UInt64(position))
            #expect(found.time == Sample.now)
            #expect(found.entry == entry, "\(example.name)")
        }
    }

    @Test func `facts and decisions are spelled in an entry as everywhere else`() throws {
        for example in RepositoryBundle.cases {
            let bytes = try Sample.entry(example).bytes(index: 0, time: Sample.now)
            let json = try CanonicalJSON.readCanonical(bytes)
            #expect(json["facts"] == .object(example.facts.json), "\(example.name)")
            let decision = decide(example.request, given: example.facts, under: RepositoryBundle.policy)
            #expect(
                json["deliveries"]?[JSONPointer(["0", "decision"])] == .object(decision.json),
                "\(example.name)")
        }
        // Every fact there is, present and absent.
        var facts = Sample.facts
        facts.sizes = PayloadSizes(sealed: 1, generic: 2, full: 3)
        facts.consent = ConsentFact(state: .given, method: .doubleOptIn, expiresAt: Sample.now)
        facts.quietHours = .inside(endsAt: Sample.now.advanced(bySeconds: 60))
        #expect(Set(facts.json.keys) == Set(Facts.names))
        let request = RepositoryBundle.cases[0].request
        for name in [nil] + Facts.names.map(Optional.some) {
            let facts = name.map { facts.removing($0)! } ?? facts
            let decision = decide(request, given: facts, under: RepositoryBundle.policy)
            let entry = Sample.entry(
                [.init(destination: Sample.tag(1), message: nil, facts: facts, decision: decision)],
                request: request)
            let json = try CanonicalJSON.readCanonical(try entry.bytes(index: 0, time: Sample.now))
            #expect(json["facts"] == .object(facts.json))
            #expect(try SendEntry.read(CanonicalJSON.write(json)).entry.deliveries[0].facts == facts)
        }
    }

    @Test func `facts written once are those of the tree, shared ones and each delivery's own`() throws {
        var numbers = SeededNumbers(seed: 11)
        let example = try #require(RepositoryBundle.cases.first)
        for count in [1, 2, 2, 3] {
            for _ in 0..<200 {
                let facts = (0..<count).map { _ in Facts.random(using: &numbers) }
                for facts in facts {
                    #expect(EncodedFacts(facts).bytes == CanonicalJSON.write(facts.json))
                }
                let entry = Sample.entry(
                    facts.enumerated().map { position, facts in
                        .init(
                            destination: Sample.tag(UInt64(position)), message: nil, facts: facts,
                            decision: decide(example.request, given: facts, under: RepositoryBundle.policy))
                    }, request: example.request)
                let bytes = try entry.bytes(index: 0, time: Sample.now)
                // Facts that were written before give the same bytes.
                var again = entry
                again.deliveries = entry.deliveries.map {
                    .init(
                        destination: $0.destination, message: $0.message,
                        facts: DecidedFacts($0.facts, isEncoded: true), decision: $0.decision)
                }
                #expect(try again.bytes(index: 0, time: Sample.now) == bytes)
                let json = try CanonicalJSON.readCanonical(bytes)
                // A fact stands outside exactly where all have it, or none.
                let (first, others) = (facts[0].json, facts.dropFirst().map(\.json))
                let shared = first.filter { key, value in others.allSatisfy { $0[key] == value } }
                #expect(json["facts"] == .object(JSONObject(shared.map { ($0.key, $0.value) })))
                for (position, facts) in facts.enumerated() {
                    let own = facts.json.filter { key, _ in !shared.contains { $0.key == key } }
                    let found = json["deliveries"]?[JSONPointer(["\(position)", "facts"])]
                    #expect(found == .object(JSONObject(own.map { ($0.key, $0.value) })))
                }
            }
        }
    }

    @Test func `an entry holds nothing the trail's closed table does not allow`() throws {
        for example in RepositoryBundle.cases {
            for bytes in [
                try Sample.entry(example).bytes(index: 1, time: Sample.now),
                try RedecisionEntryTests.entry(example).bytes(index: 1, time: Sample.now),
            ] {
                let entry = try TrailEntry(reading: bytes)
                #expect(EntrySchema.version1.violation(in: entry) == nil, "\(example.name)")
            }
        }
        let several = try Self.severalDevices().bytes(index: 1, time: Sample.now)
        #expect(EntrySchema.version1.violation(in: try TrailEntry(reading: several)) == nil)
    }

    @Test(
        arguments: [
            ("nb-NO", "nb-NO"), ("sr-latn-rs", "sr-Latn-RS"), ("nb-x-ahmad", "nb"), ("de-karimi", "de"),
            ("Ahmad Karimi", nil),
            ("karimi", nil), ("", nil), (nil, nil),
        ] as [(String?, String?)]) func `of a locale only what closed lists know is recorded`(
            _ asked: String?, _ recorded: String?
        )
    {
        let request = SendEntry.RecordedRequest(
            type: TypeID("a.b"), channel: .push, critical: false, locale: asked)
        #expect(request.locale == recorded)
    }

    @Test func `an entry is this text`() throws {
        let example = try #require(RepositoryBundle.cases.first)
        let bytes = try Sample.entry(example).bytes(index: 17, time: Sample.now)
        let json = try CanonicalJSON.readCanonical(bytes)
        #expect(
            json.objectValue.map { Array($0.keys) } == [
                "caller", "deliveries", "detail", "facts", "index", "kind", "outcome", "params_verdict",
                "peer", "policy",
                "reason", "request", "send_id", "subject", "time", "tzdata", "v",
            ])
        #expect(json["kind"] == "send")
        #expect(json["v"] == 1)
        #expect(json["index"] == 17)
        #expect(json["time"] == .integer(Sample.now.milliseconds))
        #expect(json["peer"] == ["gid": 1002, "pid": 4711, "uid": 1001])
        #expect(json["caller"] == "marketing")
        #expect(json["outcome"] == "reject")
        #expect(json["reason"] == "no_gdpr_consent")
        #expect(json["detail"] == "never_asked")
        #expect(json["policy"] == .string(RepositoryBundle.policy.digest.text))
        #expect(
            json["request"] == [
                "channel": "push", "critical": false, "id_tag": .string(Sample.tag(7).hexadecimal),
                "locale": "nb",
                "ttl_seconds": 3600, "type": "promo.offer",
            ])
    }

    static func severalDevices() -> SendEntry {
        let request = AttestedRequest(
            caller: CallerName("payments"), type: TypeID("transaction.remittance_sent"), channel: .push,
            critical: false)
        var deliveries: [SendEntry.DeliveryRecord] = []
        for number in UInt64(1)...3 {
            var facts = Sample.facts
            facts.sizes = PayloadSizes(sealed: 1480)
            facts.platform = number == 2 ? .android : .ios
            facts.osPermission = number == 3 ? .denied : .granted
            // Known of the first only: absence differs too.
            if number > 1 { facts.criticalAlerts = nil }
            let decision = decide(request, given: facts, under: RepositoryBundle.policy)
            deliveries.append(
                .init(
                    destination: Sample.tag(number),
                    message: decision.outcome.isPromise ? Sample.message : nil, facts: facts,
                    decision: decision, key: decision.outcome.isPromise ? KeyID(high: 1, low: number) : nil,
                    byteCount: 1480))
        }
        return Sample.entry(deliveries, request: request)
    }

    @Test func `a fact that is the same everywhere stands once`() throws {
        let entry = Self.severalDevices()
        let bytes = try entry.bytes(index: 0, time: Sample.now)
        let json = try CanonicalJSON.readCanonical(bytes)
        #expect(json["facts"]?["recipient"] == "registered")
        for name in ["platform", "os_permission", "critical_alerts"] { #expect(json["facts"]?[name] == nil) }
        let deliveries = try #require(json["deliveries"]?.arrayValue)
        #expect(
            deliveries[0]["facts"] == [
                "critical_alerts": true, "os_permission": "granted", "platform": "ios",
            ])
        #expect(deliveries[1]["facts"] == ["os_permission": "granted", "platform": "android"])
        #expect(deliveries[2]["facts"] == ["os_permission": "denied", "platform": "ios"])
        #expect(try SendEntry.read(bytes).entry == entry)
        #expect(replay(bytes, policies: RepositoryBundle.digests) == .same)
    }

    @Test func `a send to nobody has one delivery without a destination`() throws {
        var facts = Sample.facts
        facts.recipient = .unknown
        facts.destination = nil
        facts.sizes = nil
        let request = RepositoryBundle.cases[0].request
        let decision = decide(request, given: facts, under: RepositoryBundle.policy)
        #expect(decision.reason == .unknownRecipient)
        var entry = Sample.entry(
            [.init(destination: nil, message: nil, facts: facts, decision: decision)], request: request,
            subject: nil)
        entry.request.idTag = nil
        let bytes = try entry.bytes(index: 3, time: Sample.now)
        #expect(bytes.text.contains(#""destination":null"#))
        #expect(bytes.text.contains(#""subject":null"#))
        #expect(try SendEntry.read(bytes).entry == entry)
        #expect(replay(bytes, policies: RepositoryBundle.digests) == .same)
    }

    @Test func `a type that was not in the registry is a tag and a length, and is decided again`() throws {
        let request = AttestedRequest(
            caller: CallerName("payments"), type: TypeID("kanari.fugl"), channel: .push, critical: false)
        let facts = Sample.facts
        let decision = decide(request, given: facts, under: RepositoryBundle.policy)
        #expect(decision.reason == .unknownType)
        for hasTag in [true, false] {
            var entry = Sample.entry(
                [.init(destination: nil, message: nil, facts: facts, decision: decision)], request: request)
            if !hasTag { entry.request.typeTag = nil }
            let bytes = try entry.bytes(index: 3, time: Sample.now)
            #expect(!bytes.text.contains("kanari"))
            #expect(bytes.text.contains(#""type_byte_count":11"#))
            #expect(bytes.text.contains(#""type_tag":""#) == hasTag)
            #expect(try SendEntry.read(bytes).entry == entry)
            #expect(EntrySchema.version1.violation(in: try TrailEntry(reading: bytes)) == nil)
            #expect(replay(bytes, policies: RepositoryBundle.digests) == .same)
            // Neither both nor none of them.
            for wrong in [#""type":"a.b","type_byte_count":11"#, #""type_byte_count":"11""#] {
                #expect(throws: EntryError.self) {
                    try SendEntry.read(bytes.replacing(#""type_byte_count":11"#, with: wrong))
                }
            }
        }
    }

    @Test func `an entry with every optional member reads back`() throws {
        var entry = Self.severalDevices()
        entry.request = .init(
            type: entry.request.type, channel: .push, critical: false, idTag: Sample.tag(1),
            destinationTag: Sample.tag(2),
            fallbackFor: Sample.send, ttlSeconds: 60, collapseTag: Sample.tag(3), deepLinkTag: Sample.tag(4),
            locale: "nb-NO")
        entry.paramsVerdict = [JSONPointer(["deep_link"]), JSONPointer(["params", "amount", "minor"])]
        entry.replaces = 12
        #expect(try SendEntry.read(try entry.bytes(index: 20, time: Sample.now)).entry == entry)
    }

    @Test func `an answer that does not follow from the deliveries is found`() throws {
        let bytes = try Self.severalDevices().bytes(index: 0, time: Sample.now)
        #expect(throws: EntryError.contradictory(what: "outcome")) {
            try SendEntry.read(
                bytes.replacing(
                    #""outcome":"forward","params_verdict""#, with: #""outcome":"reject","params_verdict""#))
        }
        #expect(throws: EntryError.contradictory(what: "reason")) {
            try SendEntry.read(
                bytes.replacing(#""reason":"allowed","request""#, with: #""reason":"expired","request""#))
        }
    }

    @Test(arguments: [
        (#""v":1"#, #""v":2"#), (#""subject":""#, #""subject":"0"#), (#""index":0,"#, #""index":-1,"#),
        (#""tzdata":"2026b""#, #""tzdata":5"#),
        (#""recipient":"registered""#, #""recipient":"maybe""#), (#""kind":"send""#, #""kind":"sent""#),
        (#""params_verdict":[]"#, #""owed":[],"params_verdict":[]"#),
        (#""critical":false,"#, #""critical":false,"event_tags":{},"#),
        (#""params_verdict":[]"#, #""params_verdict":["a"]"#), (#""peer":{"#, #""peer":{"a":1,"#),
        (#","time":"#, #", "time":"#),
        (#""recipient":"registered""#, #""recipient":"registered","recipients":1"#),
        (#""platform":"ios""#, #""platform":"ios","privacy":"generic""#),
        (#""push_enabled":true,"#, #""push_enabled":null,"#),
        (#""sizes":{"sealed":1480}"#, #""sizes":{"sealed":-1}"#),
        (#""sizes":{"sealed":1480}"#, #""sizes":{"sealed":1480,}"#),
        (#""send_id":""#, #""extra":1,"send_id":""#), (#""policy":""#, #""policy":"0"#),
    ]) func `another spelling is no entry`(_ old: String, _ new: String) throws {
        let bytes = try Self.severalDevices().bytes(index: 0, time: Sample.now)
        let changed = bytes.replacing(old, with: new)
        #expect(changed != bytes, "the test changes nothing")
        #expect(throws: EntryError.self) { try SendEntry.read(changed) }
    }

    @Test func `no bytes are an entry by accident`() throws {
        let bytes = try Self.severalDevices().bytes(index: 0, time: Sample.now)
        for count in stride(from: 0, to: bytes.count, by: 13) {
            #expect(throws: EntryError.self) { try SendEntry.read(Array(bytes.prefix(count))) }
        }
        #expect(throws: EntryError.self) { try SendEntry.read(bytes + [0x20]) }
        #expect(throws: EntryError.otherKind("start")) {
            try SendEntry.read(Array(#"{"kind":"start"}"#.utf8))
        }
    }

    @Test func `whatever is changed in an entry, it is refused or reads back byte for byte`() throws {
        let entries = [
            try Self.severalDevices().bytes(index: 12, time: Sample.now),
            try Sample.entry(try #require(RepositoryBundle.cases.first { $0.expected.outcome == .defer }))
                .bytes(index: 3, time: Sample.now),
        ]
        var generator = SystemRandomNumberGenerator()
        let spice = Array("0123456789abcdef\"\\{}[],:-. eE\u{0}\n".utf8) + [0x80, 0xFF, 0xC0]
        var refused = 0
        for _ in 0..<4000 {
            var bytes = entries.randomElement(using: &generator)!
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                let place = bytes.indices.randomElement(using: &generator)!
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: bytes[place] = spice.randomElement(using: &generator)!
                case 1: bytes.insert(spice.randomElement(using: &generator)!, at: place)
                case 2: bytes.remove(at: place)
                default:
                    let end = min(bytes.count, place + Int.random(in: 1...40, using: &generator))
                    bytes.insert(contentsOf: bytes[place..<end], at: place)
                }
            }
            do {
                let found = try SendEntry.read(bytes)
                #expect(
                    try found.entry.bytes(index: found.index, time: found.time) == bytes, "\(bytes.text)")
                #expect(CanonicalJSON.isCanonical(bytes), "\(bytes.text)")
            } catch {
                refused += 1
            }
        }
        #expect(refused > 1000)
    }

    @Test func `a fact that stands in the wrong place is found`() throws {
        let bytes = try Self.severalDevices().bytes(index: 0, time: Sample.now)
        // `age` is the same everywhere and so belongs outside; `platform` differs and belongs inside.
        for (old, new) in [
            (#""age":"adult","#, ""),
            (#""facts":{"critical_alerts""#, #""facts":{"age":"adult","critical_alerts""#),
            (#""privacy":"generic""#, #""platform":"ios","privacy":"generic""#),
        ] {
            let changed = bytes.replacing(old, with: new)
            #expect(changed != bytes)
            if old.isEmpty == false, new.isEmpty {
                // A fact that is not known any more is another entry, and its own decisions no longer follow.
                #expect(try SendEntry.read(changed).entry.deliveries[0].facts.age == nil)
            } else {
                #expect(throws: EntryError.contradictory(what: "facts")) { try SendEntry.read(changed) }
            }
        }
        // With one delivery everything stands outside.
        let alone = try Sample.entry(RepositoryBundle.cases[0]).bytes(index: 0, time: Sample.now)
        let moved = alone.replacing(#""facts":{}}"#, with: #""facts":{"age":"adult"}}"#)
            .replacing(#""age":"adult","category_count""#, with: #""category_count""#)
        #expect(moved != alone)
        #expect(throws: EntryError.contradictory(what: "facts")) { try SendEntry.read(moved) }
    }

    @Test func `twenty devices fit, and too much of anything is refused`() throws {
        var entry = Self.severalDevices()
        let one = entry.deliveries[0]
        entry.deliveries = (UInt64(1)...20).map {
            var delivery = one
            delivery.destination = Sample.tag($0)
            delivery.facts.osPermission = $0 % 2 == 0 ? .denied : .granted
            return delivery
        }
        #expect(try entry.bytes(index: 0, time: Sample.now).count < 65_535)
        entry.tzdata = String(repeating: "x", count: 65_535)
        #expect(throws: TrailEntryError.self) { try entry.bytes(index: 0, time: Sample.now) }
    }
}

@Suite struct RedecisionEntryTests {
    static func entry(_ example: PolicyCase) -> RedecisionEntry {
        RedecisionEntry(
            send: Sample.send, message: Sample.message, destination: Sample.tag(1), subject: Sample.subject,
            request: example.request, facts: example.facts,
            decision: decide(example.request, given: example.facts, under: RepositoryBundle.policy),
            policy: RepositoryBundle.policy.digest,
            cause: "due")
    }

    @Test func `a second decision reads back and replays, for every case of the bundle`() throws {
        #expect(RepositoryBundle.cases.count > 50)
        for example in RepositoryBundle.cases {
            let entry = Self.entry(example)
            let bytes = try entry.bytes(index: 5, time: Sample.now)
            #expect(CanonicalJSON.isCanonical(bytes))
            let found = try RedecisionEntry.read(bytes)
            #expect(found.entry == entry)
            #expect(found.index == 5)
            #expect(replay(bytes, policies: RepositoryBundle.digests) == .same, "\(example.name)")
        }
    }

    @Test func `a changed second decision is found`() throws {
        let allowed = try #require(RepositoryBundle.cases.first { $0.expected.outcome == .forward })
        var entry = Self.entry(allowed)
        entry.facts.recipient = .unknown
        guard
            case .differs(let differences) = replay(
                try entry.bytes(index: 5, time: Sample.now), policies: RepositoryBundle.digests)
        else { return #expect(Bool(false), "nothing was found") }
        #expect(differences.contains { $0.pointer.text == "/decision/outcome" })
    }
}
