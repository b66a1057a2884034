import CanonicalJSON
import GateRecords
import GateVocabulary
import WireProtocol

/// Every body the socket reads, without its type.
struct BodyCase: CustomStringConvertible, Sendable {
    let name: String
    let example: JSONValue
    let read: @Sendable ([UInt8]) -> BodyError?

    init<Body: WireBody>(_: Body.Type, _ name: String) {
        self.name = name
        example = Body.example
        read = { bytes in
            switch Body.read(bytes) {
            case .success: nil
            case .failure(let error): error
            }
        }
    }

    var description: String { name }

    func accepts(_ value: JSONValue) -> Bool { read(CanonicalJSON.write(value)) == nil }

    static let all: [BodyCase] = [
        BodyCase(SendRequest.self, "SendRequest"), BodyCase(ExplainBody.self, "ExplainRequest"),
        BodyCase(Given<RecipientRecord>.self, "Recipient"), BodyCase(Given<DeviceRecord>.self, "Device"),
        BodyCase(Given<AddressRecord>.self, "Address"), BodyCase(DeviceKeyBody.self, "DeviceKey"),
        BodyCase(KeyConfirmBody.self, "KeyConfirmation"), BodyCase(ConsentBody.self, "Consent"),
        BodyCase(ConsentWithdrawBody.self, "ConsentWithdrawal"), BodyCase(PreferenceBody.self, "Preference"),
        BodyCase(PermissionPromptBody.self, "PermissionPrompt"), BodyCase(ReceiptBody.self, "Receipt"),
        BodyCase(KeyRevokeBody.self, "KeyRevocation"), BodyCase(PolicyActivateBody.self, "PolicyActivation"),
        BodyCase(EmptyBody.self, "Empty"), BodyCase(ReplyBody.self, "Reply"),
    ]

    /// More bodies the reference must accept: the ends of ranges, and every branch of a variant.
    static let accepted: [(body: String, value: JSONValue)] = [
        ("Address", ["kind": "email", "value": "a@b.no", "verified_at": nil]),
        ("Address", ["kind": "sms", "value": "+1234567"]),
        ("Device", device("ios", "00AAff")), ("Device", device("ios", String(repeating: "a0", count: 100))),
        ("Device", device("android", "c1:APA91b-_Z")), ("Device", device("android", "t")),
        ("Device", device("ios", "ExponentPushToken[aZ9_-]", by: "expo")),
        ("Device", device("android", "ExpoPushToken[x]", by: "expo")),
        ("Device", device("ios", "F5f8E9a0-0b1C-4d2e-8F3a-4b5c6d7e8f90", by: "expo")),
        (
            "Receipt",
            [
                "send": "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", "destination": "d_1", "event": "failed",
                "reason": "BadDeviceToken", "at": "2026-11-21T05:00:00Z",
            ]
        ),
        (
            "Receipt",
            [
                "send": "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", "destination": "d_1",
                "event": "accepted_by_provider", "at": "2026-11-21T05:00:00Z",
            ]
        ),
        (
            "Reply",
            [
                "id": "m", "channel": "email", "from": "a@b.no", "text": "",
                "received_at": "2026-11-21T05:00:00Z",
            ]
        ),
        ("ConsentWithdrawal", ["reply": "STOP"]),
        ("Consent", consent(["channel": "sms", "address": "a_1", "expires_at": "2027-01-01T00:00:00Z"])),
        ("Consent", consent(["channel": "email", "address": "a_1", "state": "refused"])),
        (
            "DeviceKey",
            [
                "suite": "X25519_SHA256_CHACHA20POLY1305",
                "public_key": "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA",
            ]
        ),
        (
            "ExplainRequest",
            [
                "type": "x", "recipient": ["user": "u", "address": "a"],
                "policy": .string(String(repeating: "0", count: 64)),
            ]
        ),
        ("ExplainRequest", ["type": "x", "facts": [:]]),
        (
            "Preference",
            ["state": "default", "source": "admin_override", "channel": "email", "address": "a_1"]
        ),
        ("Recipient", ["region": "US-CA", "region_at": "2026-01-01T00:00:00.5+05:30"]),
        ("SendRequest", send(["ttl_seconds": 1])), ("SendRequest", send(["ttl_seconds": 2_419_200])),
        ("SendRequest", send(["id": .string(String(repeating: "x", count: 128))])),
        ("SendRequest", send(["id": .string(String(repeating: "🦊", count: 32))])),
        ("SendRequest", send(["params": ["a": [["b": [nil, true, -9_007_199_254_740_991, "æ"]]]]])),
        ("SendRequest", send(["type": "No Such Type!"])),
    ]

    private static func device(_ platform: String, _ token: String, by provider: String? = nil) -> JSONValue {
        var device: JSONObject = [
            "platform": .string(platform), "app": "no.getdrop.app", "token": .string(token),
            "os_permission": "granted",
        ]
        device["provider"] = provider.map { .string($0) }
        return .object(device)
    }

    static func send(_ changes: JSONObject) -> JSONValue { changed(SendRequest.example, changes) }
    static func consent(_ changes: JSONObject) -> JSONValue { changed(ConsentBody.example, changes) }

    private static func changed(_ value: JSONValue, _ changes: JSONObject) -> JSONValue {
        guard var object = value.objectValue else { return value }
        for member in changes.members { object[member.key] = member.value }
        return .object(object)
    }
}

/// Neighbours of a value: one member removed, added, or made something else, at every depth.
enum Mutations {
    /// What a member is replaced by: one of every type, and the edges of the bounds in use.
    private static let replacements: [JSONValue] = [
        nil, true, 0, 1, -1, 2_419_200, 2_419_201, 9_007_199_254_740_991, -9_007_199_254_740_991, "", " ",
        ".", "..",
        "x", "a\nb", "\u{7F}", "\u{80}", "\u{9F}", "\u{A0}", "æ", "🦊", [], [:], ["x": 1], [nil],
        "2026-02-29T00:00:00Z", "2028-02-29T23:59:59.123456789-00:00", "2026-11-21T05:00:60Z",
        "2026-11-21T05:00:00",
        "2026-11-21t05:00:00z", "1969-12-31T23:59:59Z", "2026-13-01T00:00:00Z", "NO", "no", "US-CALI",
        "24:00", "00:00",
        "Europe/Oslo", "Europe//Oslo", "UTC", "nb-NO", "n", "nb_NO", "drop://send", "nothing", "+4790000000",
        "+0123456789", "a@b", "a@b.c", "push", "sms", "given", "device", "kyc", "default", "user_off",
        "user_off_step_up", "never_asked", "refused", "in_app_step_up", "ios", "expo",
        "ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]",
        "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", "7D1C0D52-93A1-4F0E-8D7B-2F3F1F0A9C11",
        .string(String(repeating: "x", count: 128)), .string(String(repeating: "x", count: 129)),
        .string(String(repeating: "æ", count: 32)), .string(String(repeating: "æ", count: 33)),
        .string(String(repeating: "x", count: 513)), .string(String(repeating: "x", count: 2_049)),
        .string(String(repeating: "x", count: 4_096)), .string(String(repeating: "x", count: 4_097)),
        .string(String(repeating: "a", count: 64)), .string("d:" + String(repeating: "x", count: 511)),
        .string(String(repeating: "A", count: 43)), .string(String(repeating: "A", count: 42) + "B"),
        [[[[1]]]], [[[[[1]]]]], .array(Array(repeating: 1, count: 64)),
        .array(Array(repeating: 1, count: 65)),
        .object(JSONObject((0..<65).map { ("k\($0)", 1) })), ["a\u{1}": 1],
        .object([String(repeating: "k", count: 65): 1]),
    ]

    static func around(_ value: JSONValue) -> [JSONValue] {
        var found = replacements
        switch value {
        case .object(let object):
            for member in object.members {
                var without = object
                without[member.key] = nil
                found.append(.object(without))
                for inner in around(member.value) {
                    var changed = object
                    changed[member.key] = inner
                    found.append(.object(changed))
                }
            }
            for key in ["unknown", "Id", "", "address", "device", "region_at", "region", "critical"] {
                for extra in ["x", nil, true, "2026-11-21T05:00:00Z"] as [JSONValue] {
                    var changed = object
                    changed[key] = extra
                    found.append(.object(changed))
                }
            }
        case .array(let elements):
            for (index, element) in elements.enumerated() {
                for inner in around(element) {
                    var changed = elements
                    changed[index] = inner
                    found.append(.array(changed))
                }
            }
        default: break
        }
        return found
    }
}
