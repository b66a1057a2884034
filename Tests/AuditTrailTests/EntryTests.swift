@testable import AuditTrail
@testable import GateRecords
import CanonicalJSON
import GateTestKit
import GateVocabulary
import Testing

@Suite struct EntryTests {
    @Test func `an entry is canonical JSON and reads back as itself`() throws {
        let entry = TrailEntry(
            kind: EntryKind("send"), index: 7, time: Instant(milliseconds: 1_700_000_000_123),
            members: ["outcome": "forward", "a": [1, 2]])
        let encoded = try entry.encoded()
        #expect(
            String(decoding: encoded.bytes, as: UTF8.self)
                == #"{"a":[1,2],"index":7,"kind":"send","outcome":"forward","time":1700000000123,"v":1}"#)
        #expect(encoded.leafHash == TreeHash.leaf(encoded.bytes))
        #expect(try TrailEntry(reading: encoded.bytes) == entry)
    }

    @Test(arguments: [
        (#"{"index":7,"kind":"send","time":1,"v":0}"#, "v"),
        (#"{"index":7,"kind":"send","time":1,"v":"2"}"#, "v"), (#"{"index":7,"kind":"send","time":1}"#, "v"),
        (#"{"index":-1,"kind":"send","time":1,"v":1}"#, "index"),
        (#"{"kind":"send","time":1,"v":1}"#, "index"),
        (#"{"index":7,"kind":5,"time":1,"v":1}"#, "kind"),
        (#"{"index":7,"kind":"send","time":"1","v":1}"#, "time"),
        ("[]", ""),
    ])
    func `an envelope that is not version 1's is refused by the member's name`(_ text: String, member: String)
    {
        #expect(throws: TrailEntryError.envelope(member: member)) {
            try TrailEntry(reading: Array(text.utf8))
        }
    }

    @Test func `an envelope of a later version is refused as what a newer sendgate wrote`() {
        #expect(throws: TrailEntryError.newerFormat(2)) {
            try TrailEntry(reading: Array(#"{"index":7,"kind":"send","time":1,"v":2}"#.utf8))
        }
    }

    @Test func `an entry in another spelling is refused`() {
        #expect(throws: TrailEntryError.notCanonical(.notCanonical(at: JSONPlace(offset: 11)))) {
            try TrailEntry(reading: Array(#"{"index":7, "kind":"send","time":1,"v":1}"#.utf8))
        }
    }

    @Test func `an entry fits a bundle's length field, to the byte`() throws {
        func entry(_ count: Int) -> TrailEntry {
            TrailEntry(
                kind: EntryKind("k"), index: 0, time: Instant(milliseconds: 0),
                members: ["p": .string(String(repeating: "x", count: count))])
        }
        let overhead = try entry(0).encoded().bytes.count
        #expect(try entry(65_535 - overhead).encoded().bytes.count == 65_535)
        #expect(throws: TrailEntryError.tooLong(byteCount: 65_536, byteCountMax: 65_535)) {
            try entry(65_536 - overhead).encoded()
        }
    }
}

@Suite struct EntrySchemaTests {
    private static let day = TextRule("a name of three letters") { $0.count == 3 }
    private static let tag = "0123456789abcdef0123456789abcdef"
    private static let schema = EntrySchema([
        EntryKind("send"): .members(
            required: [
                "subject": .tag, "outcome": .choice(["forward", "reject"]),
                "deliveries": .list(
                    of: .object(
                        .members(required: ["reason": .name], optional: ["size": .integer(0...4_096)])),
                    countMax: 2),
            ],
            optional: [
                "send": .uuid, "replayed": .boolean, "note": .nullable(.text(byteCountMax: 4)),
                "counts": .map(keys: day, values: .integer(0...9), countMax: 2),
                "either": .either([.boolean, .integer(1...1)]),
            ]),
        EntryKind("start"): .members(),
    ])

    private func violation(_ members: JSONObject, kind: String = "send") -> Violation? {
        Self.schema.violation(
            in: TrailEntry(
                kind: EntryKind(kind), index: 0, time: Instant(milliseconds: 0), members: members))
    }

    private static let good: JSONObject = [
        "subject": .string(tag), "outcome": "forward",
        "deliveries": [["reason": "allowed", "size": 4_096], ["reason": "x"]],
        "send": "0d7a2c1e-9f6b-4a58-8a3c-2b1f5e6d7c80", "replayed": true, "note": nil,
        "counts": ["day": 1, "eve": 2], "either": 1,
    ]

    @Test func `an entry of its kind passes, with and without the optional members`() {
        #expect(violation(Self.good) == nil)
        #expect(violation(["subject": .string(Self.tag), "outcome": "reject", "deliveries": []]) == nil)
        #expect(violation([:], kind: "start") == nil)
    }

    @Test func `an unknown kind fails`() {
        #expect(violation([:], kind: "stop")?.pointer?.text == "/kind")
        #expect(violation([:], kind: "")?.pointer?.text == "/kind")
    }

    @Test func `an unknown member fails wherever it stands in the order`() {
        for key in ["a", "e", "n", "zz", "", "subject2", "deliverie", "s\u{FF}"] {
            var members = Self.good
            members[key] = 1
            #expect(violation(members)?.pointer == JSONPointer.root.appending(key))
        }
        #expect(violation(["a": 1], kind: "start")?.pointer?.text == "/a")
    }

    @Test func `a missing required member fails`() {
        for key in ["subject", "outcome", "deliveries"] {
            var members = Self.good
            members[key] = nil
            #expect(violation(members)?.pointer?.text == "/\(key)")
        }
    }

    @Test(
        arguments: [
            ("subject", "0123456789abcdef0123456789abcdeF", "/subject"),
            ("subject", "0123456789abcdef0123456789abcde", "/subject"), ("subject", 1, "/subject"),
            ("outcome", "Forward", "/outcome"), ("outcome", nil, "/outcome"),
            ("send", "0D7a2c1e-9f6b-4a58-8a3c-2b1f5e6d7c80", "/send"), ("send", "0d7a2c1e", "/send"),
            ("replayed", 1, "/replayed"), ("note", "12345", "/note"), ("note", "ééé", "/note"),
            ("note", 1, "/note"),
            ("counts", ["month": 1], "/counts/month"), ("counts", ["day": 10], "/counts/day"),
            ("either", 2, "/either"), ("either", "x", "/either"),
            ("deliveries", [["reason": "a"], ["reason": "a"], ["reason": "a"]], "/deliveries"),
            ("deliveries", [["reason": "a"], ["reason": "a b"]], "/deliveries/1/reason"),
            ("deliveries", [["reason": ""]], "/deliveries/0/reason"),
            ("deliveries", [["reason": "a", "size": 4_097]], "/deliveries/0/size"),
            ("deliveries", [["reason": "a", "token": "t"]], "/deliveries/0/token"),
            ("deliveries", ["reason": "a"], "/deliveries"),
        ] as [(String, JSONValue, String)])
    func `a value of another shape fails at its place`(_ key: String, value: JSONValue, pointer: String) {
        var members = Self.good
        members[key] = value
        #expect(violation(members)?.pointer?.text == pointer)
    }

    @Test func `a violation never repeats the value`() {
        var members = Self.good
        members["subject"] = "+47 900 00 000"
        #expect(violation(members)?.message.contains("+47") == false)
    }
}
