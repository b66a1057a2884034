/// The public keys of one gateway with their states, signed by the offline authority. Apps and auditors accept signatures only by
/// keys that it lists as genuine (``Key/isBelieved``).
///
///     sendgate/keyset/v1
///     gate.example.com/prod
///     version 7
///     issued 1795000000
///     expires 1826536000
///     origin 9f86d081884c7d65 active wwAAAA…=
///     trail 0a1b2c3d4e5f6071 deactivated wwAAAA…=
///
/// The text of a C2SP signed note. One spelling: keys ascend by purpose and id, numbers have no leading zero, times are
/// Unix seconds, public keys are base64 of 32 bytes.
package struct Keyset: Hashable, Sendable {
    /// What a listed key is for.
    package enum Purpose: String, CaseIterable, Hashable, Sendable {
        /// Signs the content inside every envelope.
        case origin
        /// Signs bundles.
        case policy
        /// Signs checkpoints of the trail.
        case trail
    }

    /// One public key of the gateway, with its purpose and state.
    package struct Key: Hashable, Sendable {
        package var purpose: Purpose
        /// 16 lower-case hexadecimal digits: the first 8 bytes of SHA-256 over the public key.
        package var id: String
        package var state: KeyState
        /// Ed25519, 32 bytes.
        package var publicKey: [UInt8]

        package init(purpose: Purpose, id: String, state: KeyState, publicKey: [UInt8]) {
            self.purpose = purpose
            self.id = id
            self.state = state
            self.publicKey = publicKey
        }

        /// Whether what it signed is accepted. A key in `pre_activation` is: the gateway may promote it at any time, and what it
        /// signs then must be accepted before the next keyset is signed.
        package var isBelieved: Bool {
            switch state {
            case .preActivation, .active, .deactivated: true
            case .suspended, .compromised, .destroyed: false
            }
        }
    }

    /// The gateway's name: the origin of its trail.
    package var gateway: String
    /// At least 1; each keyset of a gateway has a higher version than the one before.
    package var version: UInt64
    /// Unix seconds.
    package var issuedAt: UInt64
    /// Unix seconds. From this moment on the keyset is refused.
    package var expiresAt: UInt64
    package var keys: [Key]

    package static let header = "sendgate/keyset/v1"
    /// As many as a gateway keeps of each purpose.
    package static let keyCountMax = 192
    package static let byteCountMax = 32_768
    package static let numberMax: UInt64 = 1 << 53 - 1

    /// - Throws: What a reader would refuse.
    package init(
        gateway: String, version: UInt64, issuedAt: UInt64, expiresAt: UInt64, keys: [Key]
    ) throws(KeysetError) {
        self.gateway = gateway
        self.version = version
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.keys = keys.sorted { ($0.purpose.rawValue, $0.id) < ($1.purpose.rawValue, $1.id) }
        guard try Keyset(parsing: text) == self else {
            throw .malformed(line: 2, why: "it has two spellings")
        }
    }

    package func believed(_ purpose: Purpose) -> [Key] {
        keys.filter { $0.purpose == purpose && $0.isBelieved }
    }

    // MARK: Text

    /// Ends with a newline.
    package var text: [UInt8] {
        var lines = [
            Self.header, gateway, "version \(version)", "issued \(issuedAt)", "expires \(expiresAt)",
        ]
        for key in keys {
            lines.append(
                "\(key.purpose.rawValue) \(key.id) \(key.state.rawValue) \(Base64.encode(key.publicKey))")
        }
        return lines.reduce(into: []) { $0 += Array($1.utf8) + [0x0A] }
    }

    package init(parsing text: [UInt8]) throws(KeysetError) {
        guard text.count <= Self.byteCountMax else { throw .tooLong(byteCount: text.count) }
        guard text.last == 0x0A else { throw .malformed(line: 1, why: "the last line has no newline") }
        let lines = text.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard lines.count >= 5 else { throw .malformed(line: lines.count, why: "it ends here") }
        guard lines[0].utf8.elementsEqual(Self.header.utf8) else {
            throw .malformed(line: 1, why: "not `\(Self.header)`")
        }
        guard SignedNote.isKeyName(lines[1]), lines[1].utf8.count <= 256 else {
            throw .malformed(line: 2, why: "no gateway's name")
        }
        gateway = lines[1]
        func number(_ name: String, line: Int) throws(KeysetError) -> UInt64 {
            let parts = lines[line - 1].split(separator: " ", omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0] == name, let value = UInt64(parts[1]), value > 0,
                value <= Self.numberMax, "\(value)".utf8.elementsEqual(parts[1].utf8)
            else { throw .malformed(line: line, why: "`\(name)` and a number should stand here") }
            return value
        }
        version = try number("version", line: 3)
        issuedAt = try number("issued", line: 4)
        expiresAt = try number("expires", line: 5)
        guard issuedAt < expiresAt else { throw .malformed(line: 5, why: "it expires before it is issued") }
        guard lines.count - 5 <= Self.keyCountMax else {
            throw .malformed(line: 5 + Self.keyCountMax + 1, why: "more than \(Self.keyCountMax) keys")
        }
        var keys: [Key] = []
        for (offset, line) in lines[5...].enumerated() {
            guard let key = Key(parsing: line) else {
                throw .malformed(line: offset + 6, why: "it is no key")
            }
            if let last = keys.last,
                (last.purpose.rawValue, last.id) >= (key.purpose.rawValue, key.id)
            {
                throw .malformed(line: offset + 6, why: "keys do not ascend by purpose and id")
            }
            keys.append(key)
        }
        self.keys = keys
        // The comparisons above are of `String`s, to which canonically equivalent texts are equal; only the one spelling passes.
        guard self.text == text else { throw .malformed(line: 1, why: "it is not in its one spelling") }
    }

    // MARK: Succession

    /// Why this keyset cannot take the place of an earlier one; `nil` when it can, or is the same.
    package func refusal(toFollow earlier: Keyset) -> KeysetError? {
        guard self != earlier else { return nil }
        guard gateway.utf8.elementsEqual(earlier.gateway.utf8) else {
            return .otherGateway(gateway, expected: earlier.gateway)
        }
        guard version > earlier.version else { return .notNewer(version: version, known: earlier.version) }
        for old in earlier.keys {
            guard let new = keys.first(where: { $0.purpose == old.purpose && $0.id == old.id }) else {
                continue
            }
            guard new.publicKey == old.publicKey else { return .changedKey(id: new.id) }
            let isOver = old.state == .compromised || old.state == .destroyed
            if isOver, new.isBelieved { return .believedAgain(id: new.id, state: old.state) }
        }
        return nil
    }
}

extension Keyset.Key {
    fileprivate init?(parsing line: String) {
        let parts = line.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 4, let purpose = Keyset.Purpose(rawValue: String(parts[0])),
            parts[1].utf8.count == 16, IdentifierText.bytes(hexadecimal: String(parts[1])) != nil,
            let state = KeyState(rawValue: String(parts[2])), let publicKey = Base64.decode(parts[3]),
            publicKey.count == NoteKeyText.publicKeyByteCount
        else { return nil }
        self.init(purpose: purpose, id: String(parts[1]), state: state, publicKey: publicKey)
    }
}

/// Why a keyset is refused.
package enum KeysetError: Error, Hashable, Sendable, CustomStringConvertible {
    case tooLong(byteCount: Int)
    /// `line` counts from 1.
    case malformed(line: Int, why: String)
    /// Not signed by an authority that is pinned; `why` says what there is instead.
    case notSigned(why: String)
    case otherGateway(String, expected: String)
    /// A version that is not above the known one, or the same version with another text.
    case notNewer(version: UInt64, known: UInt64)
    /// Unix seconds.
    case expired(at: UInt64)
    /// Another public key under an id that is known.
    case changedKey(id: String)
    /// The keyset lists a key as genuine that an earlier keyset lists as compromised or destroyed.
    case believedAgain(id: String, state: KeyState)

    package var description: String {
        switch self {
        case .tooLong(let count):
            "the keyset is \(count) bytes long; at most \(Keyset.byteCountMax) are accepted"
        case .malformed(let line, let why): "the keyset is malformed in line \(line): \(why)"
        case .notSigned(let why): "the keyset is not signed by the authority: \(why)"
        case .otherGateway(let name, let expected):
            "the keyset is of the gateway `\(name)`, not of `\(expected)`"
        case .notNewer(let version, let known):
            "the keyset has version \(version), and version \(known) is known; versions only rise"
        case .expired(let at): "the keyset expired at \(at) (Unix seconds); have the authority sign a new one"
        case .changedKey(let id): "the keyset has another public key under the id `\(id)`"
        case .believedAgain(let id, let state):
            "the keyset would have `\(id)` believed again, which was \(state.rawValue)"
        }
    }
}
