import SealedFormat
import Testing

@Suite struct KeysetTests {
    private static func key(
        _ purpose: Keyset.Purpose, _ number: UInt8, _ state: KeyState = .active
    ) -> Keyset.Key {
        Keyset.Key(
            purpose: purpose, id: IdentifierText.hexadecimal([UInt8](repeating: number, count: 8)),
            state: state,
            publicKey: [UInt8](repeating: number, count: 32))
    }

    private static func keyset(
        version: UInt64 = 7, gateway: String = "gate.example.com/prod",
        keys: [Keyset.Key] = [key(.trail, 3), key(.origin, 2, .deactivated), key(.origin, 1)]
    ) throws -> Keyset {
        try Keyset(
            gateway: gateway, version: version, issuedAt: 1_795_000_000, expiresAt: 1_826_536_000, keys: keys)
    }

    @Test func `the text has one spelling, with keys in one order`() throws {
        let text = String(decoding: try Self.keyset().text, as: UTF8.self)
        #expect(
            text == """
                sendgate/keyset/v1
                gate.example.com/prod
                version 7
                issued 1795000000
                expires 1826536000
                origin 0101010101010101 active AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=
                origin 0202020202020202 deactivated AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=
                trail 0303030303030303 active AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM=

                """)
        #expect(try Keyset(parsing: Array(text.utf8)) == Self.keyset())
    }

    @Test(arguments: [
        ("sendgate/keyset/v1", "sendgate/keyset/v2"), ("gate.example.com/prod", "gate example"),
        ("gate.example.com/prod", ""), ("version 7", "version 07"), ("version 7", "version 0"),
        ("version 7", "version -7"), ("version 7", "version +7"), ("version 7", "version  7"),
        ("version 7", "version 9007199254740992"), ("version 7", "Version 7"),
        ("issued 1795000000", "issued 1826536000"), ("issued 1795000000", "issued 1.8e9"),
        ("expires 1826536000", "expires 1826536000 "), ("origin 01", "link 01"), ("origin 01", "origin 0A"),
        ("active", "retired"), ("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=", "AQEB"),
        ("AQE=\n", "AQF=\n"), ("AQE=\n", "AQE=\r\n"), ("AQE=\n", "AQE=\n\n"),
        ("origin 0202020202020202", "origin 0101010101010101"),
        ("origin 0202020202020202", "origin 0001010101010101"), ("trail 03", "origin 00"),
    ])
    func `any other spelling is refused`(_ part: String, replacement: String) throws {
        var text = try String(decoding: Self.keyset().text, as: UTF8.self)
        let place = try #require(text.firstRange(of: part))
        text.replaceSubrange(place, with: replacement)
        #expect(throws: KeysetError.self) { try Keyset(parsing: Array(text.utf8)) }
    }

    @Test func `no prefix of it is a keyset but one that ends with a line`() throws {
        let text = try Self.keyset().text
        for count in 0..<text.count {
            let prefix = Array(text[..<count])
            if prefix.last == 0x0A, prefix.count(where: { $0 == 0x0A }) >= 5 {
                #expect(try Keyset(parsing: prefix).keys.count < 3)
            } else {
                #expect(throws: KeysetError.self) { try Keyset(parsing: prefix) }
            }
        }
    }

    @Test func `the longest list is taken and one key more is not`() throws {
        func keys(_ count: Int) -> [Keyset.Key] {
            (0..<count).map { number in
                let id = [0, 0, 0, 0, 0, 0, UInt8(number >> 8), UInt8(number & 255)] as [UInt8]
                return Keyset.Key(
                    purpose: .origin, id: IdentifierText.hexadecimal(id), state: .preActivation,
                    publicKey: [UInt8](repeating: 9, count: 32))
            }
        }
        let longest = try Self.keyset(gateway: String(repeating: "g", count: 256), keys: keys(192))
        #expect(longest.text.count < Keyset.byteCountMax)
        #expect(throws: KeysetError.malformed(line: 198, why: "more than 192 keys")) {
            try Self.keyset(keys: keys(193))
        }
        #expect(throws: KeysetError.self) { try Self.keyset(gateway: String(repeating: "g", count: 257)) }
        #expect(throws: KeysetError.tooLong(byteCount: 32_769)) {
            try Keyset(parsing: [UInt8](repeating: 0x41, count: 32_769))
        }
    }

    @Test(arguments: KeyState.allCases)
    func `only keys that nobody doubts are believed`(state: KeyState) {
        let isBelieved = Self.key(.origin, 1, state).isBelieved
        #expect(isBelieved == [.preActivation, .active, .deactivated].contains(state))
    }

    @Test func `versions only rise, and an id keeps its public key`() throws {
        let known = try Self.keyset()
        #expect(known.refusal(toFollow: known) == nil)
        #expect(try Self.keyset(version: 8).refusal(toFollow: known) == nil)
        #expect(try Self.keyset(version: 6).refusal(toFollow: known) == .notNewer(version: 6, known: 7))
        // The same version with another text is another list under its name.
        #expect(
            try Self.keyset(keys: [Self.key(.trail, 3)]).refusal(toFollow: known)
                == .notNewer(version: 7, known: 7))
        #expect(
            try Self.keyset(version: 8, gateway: "other").refusal(toFollow: known)
                == .otherGateway("other", expected: "gate.example.com/prod"))
        var changed = Self.key(.trail, 3)
        changed.publicKey[0] ^= 1
        #expect(
            try Self.keyset(version: 8, keys: [changed]).refusal(toFollow: known)
                == .changedKey(id: "0303030303030303"))
    }

    @Test(arguments: KeyState.allCases, KeyState.allCases)
    func `a key that was compromised or destroyed never comes back`(before: KeyState, after: KeyState) throws
    {
        let known = try Self.keyset(keys: [Self.key(.origin, 1, before)])
        let next = try Self.keyset(version: 8, keys: [Self.key(.origin, 1, after)])
        let isOver = before == .compromised || before == .destroyed
        let isRefused = isOver && [.preActivation, .active, .deactivated].contains(after)
        #expect(
            next.refusal(toFollow: known)
                == (isRefused ? .believedAgain(id: "0101010101010101", state: before) : nil))
    }
}
