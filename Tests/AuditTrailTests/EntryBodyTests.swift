@testable import AuditTrail
@testable import GateRecords
import CanonicalJSON
import GateVocabulary
import Testing

/// Notes the names of fields as they are shown.
private struct ShownNames<Object: FieldObject>: FieldVisitor {
    var names: [String] = []

    init(_: Object.Type) { Object.show(to: &self) }

    mutating func required<Value: FieldValue>(
        _ name: StaticString, _: WritableKeyPath<Object, Value>, _: String
    ) { names.append("\(name)") }

    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _: WritableKeyPath<Object, Value?>, _: String
    ) { names.append("\(name)") }
}

@Suite struct EntryBodyTests {
    private static let time = Instant(milliseconds: 1_700_000_000_000)
    private static let receipt = ReceiptEntry(
        send: SendID(high: 1, low: 2), destination: Tag(high: 3, low: 4), event: Code("user_observed"),
        at: time, caller: CallerName("product"), subject: SubjectID(high: 5, low: 6), channel: Code("push"),
        category: Code("security"), act: Code("tap"), openedAfterMilliseconds: 60_000, isFirstTap: true)

    private static func facts(on platform: Platform) -> Facts {
        var facts = Facts()
        (facts.now, facts.platform) = (time, platform)
        return facts
    }

    private static let send = SendEntry(
        send: SendID(high: 1, low: 2), subject: nil, caller: CallerName("product"),
        peer: .init(userID: 1, groupID: 2, processID: 3),
        request: .init(
            type: nil, typeByteCount: 3, channel: .push, critical: false,
            eventTags: [.sms: Tag(high: 1, low: 1), .push: Tag(high: 2, low: 2)]),
        paramsVerdict: [JSONPointer(["amount"])],
        deliveries: [Platform.ios, .android].map {
            .init(
                destination: Tag(high: 7, low: $0 == .ios ? 8 : 9), message: nil, facts: facts(on: $0),
                decision: .blank)
        }, policy: PolicyDigest(String(repeating: "0a", count: 32)), tzdata: "2026b", replaces: 4,
        owed: [.letter])

    @Test func `the fields of every kind are shown in canonical order, each once`() {
        func names<Body: FieldObject>(of body: Body.Type) -> [String] { ShownNames(body).names }
        for body in EntrySchema.bodies {
            // A list of fields sorts them itself.
            guard let object = body as? any FieldObject.Type else {
                #expect(body is any DeclaredEntry.Type || body == ImportEntry.self)
                continue
            }
            let names = names(of: object)
            #expect(names == Set(names).sorted(), "\(body.kind)")
        }
    }

    @Test(
        arguments: [
            receipt,
            DeliveryEntry(
                send: SendID(high: 1, low: 2), message: MessageID(high: 3, low: 4),
                subject: SubjectID(high: 5, low: 6), destination: Tag(high: 7, low: 8),
                result: Code("handed_over"), status: 200, attempts: 1),
            StartEntry(
                policy: PolicyDigest(String(repeating: "0a", count: 32)),
                approvals: [BundleApproval(key: "policy.example/1", role: Code("compliance"))],
                tzdata: "2026b", version: "1.0.0",
                keys: [
                    RecordedKeyChange(
                        key: "data-1", purpose: Code("data"), event: Code("add"), state: Code("active"),
                        cause: Code("found"))
                ], pins: [ChangedPin(key: "k", purpose: Code("policy"), event: Code("pin"))]),
            AcknowledgementEntry(
                caller: CallerName("product"), type: TypeID("a.b"), subject: SubjectID(high: 5, low: 6),
                eventTags: [.sms: Tag(high: 1, low: 1), .email: Tag(high: 2, low: 2)], withdrawn: 0),
            MandatoryUnreachedEntry(
                send: SendID(high: 1, low: 2), type: TypeID("a.b"), subject: Nullable(nil),
                mustGoBy: "letter",
                within: "without delay", policy: PolicyDigest(String(repeating: "0a", count: 32))),
            send,
            RedecisionEntry(
                send: SendID(high: 1, low: 2), message: MessageID(high: 3, low: 4),
                destination: Tag(high: 7, low: 8), subject: SubjectID(high: 5, low: 6),
                request: AttestedRequest(
                    caller: CallerName("product"), type: TypeID("a.b"), channel: .sms, critical: true),
                facts: facts(on: .ios), decision: .blank,
                policy: PolicyDigest(String(repeating: "0a", count: 32)),
                cause: "due"),
        ] as [any EntryBody])
    func `an entry is written as its envelope and its members are, and read back`(
        body: any EntryBody
    ) throws {
        func check<Body: EntryBody>(_ body: Body) throws {
            let bytes = try body.bytes(index: 7, time: Self.time)
            let entry = try TrailEntry(reading: bytes)
            let members = (body as? any FieldObject)?.json ?? entry.members
            #expect(entry == TrailEntry(kind: Body.kind, index: 7, time: Self.time, members: members))
            #expect(try entry.encoded().bytes == bytes)
            #expect(EntrySchema.version1.violation(in: entry) == nil)
            #expect(try entry.body(Body.self) == body)
        }
        try check(body)
    }

    @Test func `a name of a newer build stays readable, and says so where it has to be known`() throws {
        var body = Self.receipt
        body.channel = Code("pager")
        let entry = try TrailEntry(reading: body.bytes(index: 7, time: Self.time))
        #expect(EntrySchema.version1.violation(in: entry) == nil)
        let read: ReceiptEntry = try entry.body()
        #expect(read.channel.text == "pager" && read.channel.known(Channel.self) == nil)
        #expect(throws: UnknownCode.self) { try read.channel.name(Channel.self) }
    }

    @Test func `a member of a newer build is passed over only where that is asked for`() throws {
        var entry = try TrailEntry(reading: Self.receipt.bytes(index: 7, time: Self.time))
        entry.members["battery"] = 80
        entry.members["zeal"] = 1
        #expect(try entry.knownBody(ReceiptEntry.self) == Self.receipt)
        #expect(throws: JSONShapeError.self) { try entry.body(ReceiptEntry.self) }
        entry.members["at"] = nil
        #expect(throws: JSONShapeError.self) { try entry.knownBody(ReceiptEntry.self) }
    }
}
