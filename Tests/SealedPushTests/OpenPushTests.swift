import GateVocabulary
import OpenSSLCrypto
import SealedFormat
import SealedPush
import Testing

/// A push in the clear is believed for its origin's signature, and only as a whole.
@Suite struct OpenPushTests {
    static let members: [(member: OpenPushMember, text: String)] = [
        (.actionCategory, "TRANSACTION_ALERT"), (.alertRecord, "true"), (.badge, "3"),
        (.body, "Vi har oppdatert vilkårene."), (.category, "transactional"), (.deepLink, "drop://terms/7"),
        (.number, "7"), (.params, #"{"other":"u","transaction_id":"9b2d0f6e"}"#),
        (.send, "0b0f7f3a-6a3e-4b0e-9d5e-111111111111"), (.title, "Nye vilkår"),
        (.type, "account.terms_change"), (.unsubscribe, "https://drop.example/u/AbC123"),
    ]

    private let scene: Scene
    init() throws { scene = try Scene(.p256) }

    private func content(_ change: ([OpenPushMember: String]) -> [OpenPushMember: String] = { $0 }) throws
        -> OpenPushContent
    {
        let members = change(Dictionary(uniqueKeysWithValues: Self.members.map { ($0.member, $0.text) }))
        return try OpenPushContent { members[$0] }
    }

    private func mark(
        _ content: OpenPushContent? = nil, app: String = Scene.app, device: String = Scene.device,
        messageID: MessageID = Scene.messageID, expiresAt: UInt64 = Scene.expiresAt,
        signer: OriginSigner? = nil
    ) throws -> String {
        let mark = try (signer ?? scene.signer).mark(
            try content ?? self.content(), app: app, device: DestinationID(device), messageID: messageID,
            expiresAt: expiresAt)
        return String(decoding: mark, as: UTF8.self)
    }

    /// As Android's `data`.
    private func data(_ mark: String) -> [String: String] {
        var data = Dictionary(uniqueKeysWithValues: Self.members.map { ($0.member.rawValue, $0.text) })
        data["origin"] = mark
        return data
    }

    /// As an iPhone's `userInfo`.
    private func userInfo(_ mark: String) -> [AnyHashable: Any] {
        [
            "aps": [
                "alert": ["title": "Nye vilkår", "body": "Vi har oppdatert vilkårene."] as [AnyHashable: Any],
                "badge": 3, "category": "TRANSACTION_ALERT", "sound": "default",
            ] as [AnyHashable: Any],
            "alert_record": true, "category": "transactional", "deep_link": "drop://terms/7", "number": 7,
            "params": ["transaction_id": "9b2d0f6e", "other": "u"] as [AnyHashable: Any],
            "send_id": "0b0f7f3a-6a3e-4b0e-9d5e-111111111111", "type": "account.terms_change",
            "unsubscribe": "https://drop.example/u/AbC123", "origin": mark,
        ]
    }

    /// As an iPhone's `userInfo` of a push by way of Expo, which puts a message's `data` there.
    private func expoInfo(_ data: [String: String]) -> [AnyHashable: Any] {
        [
            "aps": [
                "alert": ["title": "came", "body": "as it did"] as [AnyHashable: Any], "mutable-content": 1,
            ] as [AnyHashable: Any],
            "body": data as [AnyHashable: Any], "experienceId": "@drop/app", "scopeKey": "@drop/app",
            "projectId": "67980e04-e0b5-48e5-bd30-8f9d25dad643",
        ]
    }

    @Test func `a push by way of Expo is verified by its data, whatever stands outside`() throws {
        let opener = try scene.opener()
        let push = try opener.verify(apns: expoInfo(data(try mark())), now: Scene.now)
        guard case .open(let shown, isNew: true) = push else {
            Issue.record("\(push)")
            return
        }
        #expect(shown.title == "Nye vilkår" && shown.body == "Vi har oppdatert vilkårene.")
        #expect(shown.actionCategory == "TRANSACTION_ALERT" && shown.badge == "3")
        for member in OpenPushMember.allCases {
            var changed = data(try mark())
            changed[member.rawValue]? += "x"
            #expect(throws: SealedPushError.self) {
                try opener.verify(apns: expoInfo(changed), now: Scene.now)
            }
        }
        #expect(throws: SealedPushError.unsigned) { try opener.verify(apns: expoInfo([:]), now: Scene.now) }
        // A text beside `aps` of another provider's push is no data.
        #expect(throws: SealedPushError.unsigned) { try opener.verify(apns: ["body": "x"], now: Scene.now) }
        let content = Array(#"{"title":"Money sent"}"#.utf8)
        let envelope = String(decoding: try scene.seal(content), as: UTF8.self)
        let sealed = try scene.opener().verify(apns: expoInfo(["sendgate": envelope]), now: Scene.now)
        guard case .sealed(.opened(let message)) = sealed else {
            Issue.record("\(sealed)")
            return
        }
        #expect(message.content == content)
    }

    @Test func `a signed push shows what the gateway wrote, on either platform`() throws {
        let mark = try mark()
        #expect(mark.utf8.count == OriginMark.characterCount)
        for push in [
            try scene.opener().verify(apns: userInfo(mark), now: Scene.now),
            try scene.opener().verify(fcm: data(mark), now: Scene.now),
        ] {
            guard case .open(let shown, isNew: true) = push else {
                Issue.record("\(push)")
                continue
            }
            #expect(shown.title == "Nye vilkår" && shown.body == "Vi har oppdatert vilkårene.")
            #expect(
                shown.deepLink == "drop://terms/7" && shown.unsubscribe == "https://drop.example/u/AbC123")
            #expect(shown.type == "account.terms_change" && shown.category == "transactional")
            #expect(shown.badge == "3" && shown.number == "7" && shown.alertRecord == "true")
            #expect(shown.params == #"{"other":"u","transaction_id":"9b2d0f6e"}"#)
            #expect(shown.actionCategory == "TRANSACTION_ALERT")
            #expect(shown.sendID == "0b0f7f3a-6a3e-4b0e-9d5e-111111111111")
            #expect(shown.messageID == Scene.messageID.uuidText && shown.expiresAt == Scene.expiresAt)
        }
    }

    @Test(arguments: OpenPushMember.allCases)
    func `a member that was changed, taken out or put in is noticed`(_ member: OpenPushMember) throws {
        let opener = try scene.opener()
        let forged = SealedPushError.forgedOrigin(
            originKeyID: IdentifierText.hexadecimal(Scene.originKeyID))
        var changed = data(try mark())
        changed[member.rawValue]? += "x"
        #expect(throws: forged) { try opener.verify(fcm: changed, now: Scene.now) }
        var without = data(try mark())
        without[member.rawValue] = nil
        #expect(throws: forged) { try opener.verify(fcm: without, now: Scene.now) }
        // Signed without it, and it is there.
        let bare = try mark(
            try content { members in members.filter { $0.key != member } })
        #expect(throws: forged) { try opener.verify(fcm: data(bare), now: Scene.now) }
    }

    @Test func `the same members in an iPhone's push are noticed too`() throws {
        let opener = try scene.opener()
        let mark = try mark()
        let changes: [(String, ([AnyHashable: Any]) -> [AnyHashable: Any])] = [
            ("title", { Self.set($0, ["aps", "alert", "title"], "Gi oss koden din") }),
            ("body", { Self.set($0, ["aps", "alert", "body"], "Trykk her") }),
            ("badge", { Self.set($0, ["aps", "badge"], 9) }),
            ("buttons", { Self.set($0, ["aps", "category"], "CODE") }),
            ("record", { Self.set($0, ["alert_record"], false) }),
            ("link", { Self.set($0, ["deep_link"], "drop://send?to=me") }),
            ("number", { Self.set($0, ["number"], 8) }),
            ("reference", { Self.set($0, ["params", "transaction_id"], "9b2d0f6f") }),
            ("send", { Self.set($0, ["send_id"], "0b0f7f3a-6a3e-4b0e-9d5e-111111111112") }),
            ("way out", { Self.set($0, ["unsubscribe"], "https://evil.example/u/AbC123") }),
        ]
        for (name, change) in changes {
            #expect(throws: SealedPushError.self, "\(name)") {
                try opener.verify(apns: change(userInfo(mark)), now: Scene.now)
            }
        }
        // What is not shown and leads nowhere is the delivery layer's to set.
        let louder = Self.set(userInfo(mark), ["aps", "sound"], "other")
        #expect(throws: Never.self) { try opener.verify(apns: louder, now: Scene.now) }
    }

    private static func set(_ dictionary: [AnyHashable: Any], _ path: [String], _ value: Any) -> [AnyHashable:
        Any]
    {
        var dictionary = dictionary
        if path.count == 1 {
            dictionary[path[0]] = value
        } else {
            let inner = dictionary[path[0]] as? [AnyHashable: Any] ?? [:]
            dictionary[path[0]] = set(inner, Array(path.dropFirst()), value)
        }
        return dictionary
    }

    @Test func `every character of the mark counts`() throws {
        let opener = try scene.opener()
        let mark = try mark()
        for place in mark.indices {
            var other = mark
            other.replaceSubrange(place...place, with: mark[place] == "A" ? "B" : "A")
            #expect(throws: SealedPushError.self, "\(place)") {
                try opener.verify(fcm: data(other), now: Scene.now)
            }
        }
        for malformed in ["", "A", mark + "A", String(mark.dropLast()), mark + "=", "{}"] {
            #expect {
                try opener.verify(fcm: data(malformed), now: Scene.now)
            } throws: {
                if case .malformedMark = $0 as? SealedPushError { true } else { false }
            }
        }
    }

    @Test func `a push of another app, device, origin or time is none of this device's`() throws {
        let opener = try scene.opener()
        let elsewhere = [try mark(app: "no.other.app"), try mark(device: "d_2")]
        for mark in elsewhere {
            #expect(throws: SealedPushError.self) { try opener.verify(fcm: data(mark), now: Scene.now) }
        }
        let stranger = try OriginSigner(keyID: [UInt8](repeating: 9, count: 8), privateKey: .generate())
        #expect(throws: SealedPushError.unknownOrigin(originKeyID: "0909090909090909")) {
            try opener.verify(fcm: data(try mark(signer: stranger)), now: Scene.now)
        }
        let thief = try OriginSigner(keyID: Scene.originKeyID, privateKey: .generate())
        #expect(throws: SealedPushError.forgedOrigin(originKeyID: "0a1b2c3d4e5f6071")) {
            try opener.verify(fcm: data(try mark(signer: thief)), now: Scene.now)
        }
        #expect(throws: SealedPushError.expired(expiredAt: Scene.expiresAt)) {
            try opener.verify(fcm: data(try mark()), now: Scene.expiresAt)
        }
        #expect(throws: Never.self) { try opener.verify(fcm: data(try mark()), now: Scene.expiresAt - 1) }
    }

    @Test func `a push is new once, and its id is nothing else's`() throws {
        let opener = try scene.opener()
        let first = data(try mark())
        for isNew in [true, false] {
            guard case .open(_, isNew: isNew) = try opener.verify(fcm: first, now: Scene.now) else {
                Issue.record("expected isNew to be \(isNew)")
                continue
            }
        }
        var other = first
        other["title"] = "Other"
        other["origin"] = try mark(try content { $0.merging([.title: "Other"]) { $1 } })
        #expect(throws: SealedPushError.repeatedMessageID(messageID: Scene.messageID.uuidText)) {
            try opener.verify(fcm: other, now: Scene.now)
        }
    }

    @Test func `a push without a mark is not the gateway's, and a sealed one is opened`() throws {
        let opener = try scene.opener()
        var bare = data("")
        bare["origin"] = nil
        #expect(throws: SealedPushError.unsigned) { try opener.verify(fcm: bare, now: Scene.now) }
        #expect(throws: SealedPushError.unsigned) { try opener.verify(apns: [:], now: Scene.now) }
        let envelope = String(decoding: try scene.seal(Array(#"{"title":"t"}"#.utf8)), as: UTF8.self)
        for push in [
            try opener.verify(fcm: ["sendgate": envelope, "title": "constant"], now: Scene.now),
            try opener.verify(apns: ["sendgate": envelope], now: Scene.now),
        ] {
            guard case .sealed(let opening) = push else {
                Issue.record("\(push)")
                continue
            }
            #expect(opening.message.content == Array(#"{"title":"t"}"#.utf8))
        }
    }

    @Test func `the statement is these bytes`() throws {
        let content = try OpenPushContent { [.title: "t", .body: "é"][$0] }
        #expect(
            content.bytes == [2, 0, 4] + Array("body".utf8) + [0, 2, 0xC3, 0xA9, 0, 5] + Array("title".utf8)
                + [0, 1, 0x74])
        let statement = try OpenPushStatement.bytes(
            originKeyID: Scene.originKeyID, app: "a", device: "dd", messageID: Scene.messageID.bytes,
            expiresAt: 1_790_000_000, content: content)
        var expected = Array("sendgate/open/v1\0".utf8) + Scene.originKeyID
        expected += [0, 1, 0x61, 0, 2, 0x64, 0x64] + Scene.messageID.bytes
        expected += [0, 0, 0, 0, 0x6A, 0xB1, 0x3B, 0x80] + content.bytes
        #expect(statement == expected)
        // Each member once, in the order of its bytes.
        let names = OpenPushMember.allCases.map(\.rawValue)
        #expect(names == names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }
}
