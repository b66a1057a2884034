import Foundation
import SealedPush
import Testing

@Suite struct KeptDeviceKeysTests {
    private static let days28: UInt64 = 2_419_200
    private static let now: UInt64 = 1_790_000_000

    private func key(_ number: Int) throws -> KeptDeviceKeys.Key {
        let digits = String(number, radix: 16)
        return try KeptDeviceKeys.Key(
            keyID: String(repeating: "0", count: 32 - digits.count) + digits,
            suiteName: "P256_SHA256_AES256GCM", reference: [UInt8(truncatingIfNeeded: number)])
    }

    /// Key 2 took the place of key 1 at ``now``.
    private func rotated() throws -> KeptDeviceKeys {
        var keys = KeptDeviceKeys()
        #expect(try keys.rotate(to: key(1), now: Self.now - 5) == [])
        #expect(try keys.rotate(to: key(2), now: Self.now) == [])
        return keys
    }

    @Test func `the active key comes first, and the one it replaced says when`() throws {
        let keys = try rotated()
        #expect(keys.active == (try key(2)))
        #expect(keys.all.map(\.keyID) == [try key(2).keyID, try key(1).keyID])
        #expect(keys.all.map(\.retiredAt) == [nil, Self.now])
    }

    /// As long as the longest life that a message can have.
    @Test(arguments: [
        (now, true), (now + days28 - 1, true), (now + days28, false), (now + days28 + 1, false),
        (UInt64.max, false),
        // A clock that was set back.
        (now - 1, true), (0, true),
    ])
    func `a replaced key is kept for 28 days to the second`(at time: UInt64, isKept: Bool) throws {
        #expect(KeptDeviceKeys.secondsKeptAfterRetirement == Self.days28)
        var keys = try rotated()
        let dropped = keys.dropExpired(now: time)
        #expect(keys.retired.isEmpty == !isKept)
        #expect(dropped.map(\.keyID) == (isKept ? [] : [try key(1).keyID]))
        // The active key has no end.
        #expect(keys.active == (try key(2)))
    }

    @Test func `a rotation drops what is over, and tells it`() throws {
        var keys = try rotated()
        let dropped = try keys.rotate(to: key(3), now: Self.now + Self.days28)
        #expect(dropped.map(\.reference) == [[1]])
        #expect(keys.all.map(\.reference) == [[3], [2]])
    }

    @Test func `the oldest key leaves a full record`() throws {
        var keys = KeptDeviceKeys()
        let fits = KeptDeviceKeys.retiredCountMax + 1
        for number in 1...fits { #expect(try keys.rotate(to: key(number), now: Self.now) == []) }
        #expect(keys.all.count == fits)
        #expect(try keys.rotate(to: key(fits + 1), now: Self.now).map(\.keyID) == [try key(1).keyID])
        #expect(keys.all.count == fits)
    }

    @Test func `no key comes back`() throws {
        var keys = try rotated()
        let before = keys
        let old = try #require(keys.retired.first)
        for key in [try key(1), try key(2), old] {
            #expect(throws: SealedPushError.self) { try keys.rotate(to: key, now: Self.now) }
        }
        #expect(keys == before)
        _ = keys.dropExpired(now: .max)
        // Its id is free again, but a retired record is no active key.
        #expect(throws: SealedPushError.self) { try keys.rotate(to: old, now: Self.now) }
    }

    @Test func `what is stored is read again`() throws {
        let keys = try rotated()
        let data = try JSONEncoder().encode(keys)
        #expect(try JSONDecoder().decode(KeptDeviceKeys.self, from: data) == keys)
        let text = String(decoding: data, as: UTF8.self)
        for name in ["key_id", "suite", "reference", "retired_at"] { #expect(text.contains("\"\(name)\":")) }
        let none = KeptDeviceKeys()
        #expect(
            try JSONDecoder().decode(KeptDeviceKeys.self, from: JSONEncoder().encode(none)) == none)
    }

    private static func json(_ keyID: String, suite: String = "P256_SHA256_AES256GCM", retiredAt: String = "")
        -> String
    { #"{"key_id":"\#(keyID)","suite":"\#(suite)","reference":[1]\#(retiredAt)}"# }
    private static let (id, other) = (String(repeating: "a", count: 32), String(repeating: "b", count: 32))
    private static let retiredAt = #","retired_at":5"#

    @Test(arguments: [
        ("a short key id", #"{"active":\#(json("aa")),"retired":[]}"#),
        ("an unknown suite", #"{"active":\#(json(id, suite: "RSA")),"retired":[]}"#),
        ("a retired key as the active one", #"{"active":\#(json(id, retiredAt: retiredAt)),"retired":[]}"#),
        ("a retired key without a time", #"{"retired":[\#(json(id))]}"#),
        ("a key twice", #"{"active":\#(json(id)),"retired":[\#(json(id, retiredAt: retiredAt))]}"#),
        (
            "too many",
            "{\"retired\":["
                + (0..<33).map {
                    json(String(repeating: "0", count: 30) + "\($0 + 10)", retiredAt: retiredAt)
                }
                .joined(separator: ",") + "]}"
        ),
    ])
    func `a record of another form is refused`(name: String, text: String) throws {
        #expect(throws: SealedPushError.self, "\(name)") {
            try JSONDecoder().decode(KeptDeviceKeys.self, from: Data(text.utf8))
        }
        // With nothing wrong the same texts are read.
        let right =
            #"{"active":\#(Self.json(Self.id)),"retired":[\#(Self.json(Self.other, retiredAt: Self.retiredAt))]}"#
        #expect(try JSONDecoder().decode(KeptDeviceKeys.self, from: Data(right.utf8)).all.count == 2)
    }

    @Test func `references and ids of the wrong form are refused`() {
        for (id, suite, count) in [
            ("", "P256_SHA256_AES256GCM", 1), (Self.id.uppercased(), "P256_SHA256_AES256GCM", 1),
            (Self.id, "p256", 1), (Self.id, "P256_SHA256_AES256GCM", 0),
            (Self.id, "P256_SHA256_AES256GCM", 4097),
        ] {
            #expect(throws: SealedPushError.self, "\(id) \(suite) \(count)") {
                try KeptDeviceKeys.Key(
                    keyID: id, suiteName: suite, reference: [UInt8](repeating: 0, count: count))
            }
        }
    }
}
