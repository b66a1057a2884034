import SealedFormat

#if canImport(CryptoKit)
    import CryptoKit
#else
    import Crypto
#endif

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The offline key that says which keys of the gateway are genuine: the only thing an app pins.
@available(macOS 14, iOS 17, tvOS 17, watchOS 10, visionOS 1, macCatalyst 17, *)
public struct AuthorityKey: Sendable, Hashable {
    let key: NoteKeyText

    /// - Parameter verifierKey: As `sendgate keys authority init` printed it: `name+8 hex digits+base64` (C2SP
    ///   signed-note, "Signatures"). Ed25519 keys only.
    public init(_ verifierKey: String) throws(SealedPushError) {
        guard let key = NoteKeyText(parsing: verifierKey), key.algorithm == 0x01,
            NoteKeyText.keyID(
                digest: Array(
                    SHA256.hash(
                        data: NoteKeyText.hashed(
                            name: key.name, algorithm: key.algorithm, publicKey: key.publicKey))))
                == key.keyID,
            (try? Curve25519.Signing.PublicKey(rawRepresentation: key.publicKey)) != nil
        else {
            throw .malformedConfiguration(
                detail: "an authority key reads `name+8 hex digits+base64` and is an Ed25519 key")
        }
        self.key = key
    }

    fileprivate func isValid(_ signature: [UInt8], for text: [UInt8]) -> Bool {
        (try? Curve25519.Signing.PublicKey(rawRepresentation: key.publicKey))?
            .isValidSignature(signature, for: text) ?? false
    }
}

/// The gateway's origin keys, as the authority signed them.
///
/// An app ships one with its build, asks its own server for a newer one (`GET /v1/keyset` behind it) at every start and
/// whenever an envelope names an unknown origin, and stores ``note``:
///
///     var keyset = try TrustedKeyset(note: stored, authorities: [pinned], gateway: "gate.example.com/prod", now: now)
///     if let fetched { keyset = try TrustedKeyset(note: fetched, …, after: keyset, now: now) }
///
/// A stolen origin key can neither bless a successor nor come back: only the authority signs, and versions only rise.
@available(macOS 14, iOS 17, tvOS 17, watchOS 10, visionOS 1, macCatalyst 17, *)
public struct TrustedKeyset: Sendable, Hashable {
    /// The signed note, byte for byte: what is stored.
    public let note: [UInt8]
    private let keyset: Keyset

    /// Rises with every keyset that the authority signs.
    public var version: UInt64 { keyset.version }
    /// Unix seconds. From here on no message opens, until a newer keyset is there.
    public var expiresAt: UInt64 { keyset.expiresAt }
    /// The keys whose signatures are believed.
    var origins: [Keyset.Key] { keyset.believed(.origin) }

    /// - Parameters:
    ///   - note: At most 128 KiB, as it came: from the app's build, its server or its storage.
    ///   - authorities: The pinned keys; one signature by any of them is enough. Two are pinned while one takes the place
    ///     of the other.
    ///   - gateway: The name of the gateway the app belongs to.
    ///   - earlier: The newest one that was accepted here, if any.
    ///   - now: Unix seconds by the device's clock.
    /// - Throws: ``SealedPushError/untrustedKeyset(detail:)``, ``SealedPushError/staleKeyset(version:known:)`` or
    ///   ``SealedPushError/expiredKeyset(expiredAt:)``. The earlier one stays good.
    public init(
        note: [UInt8], authorities: [AuthorityKey], gateway: String, after earlier: TrustedKeyset? = nil,
        now: UInt64
    ) throws(SealedPushError) {
        let signed: SignedNote
        do throws(NoteError) {
            signed = try SignedNote(parsing: note)
        } catch { throw .untrustedKeyset(detail: error.message) }
        guard Self.isSigned(signed, by: authorities) else {
            throw .untrustedKeyset(detail: "no pinned authority signed it")
        }
        let keyset: Keyset
        do throws(KeysetError) {
            keyset = try Keyset(parsing: signed.text)
        } catch { throw .untrustedKeyset(detail: error.description) }
        guard keyset.gateway.utf8.elementsEqual(gateway.utf8) else {
            throw .untrustedKeyset(
                detail: KeysetError.otherGateway(keyset.gateway, expected: gateway).description)
        }
        switch earlier.flatMap({ keyset.refusal(toFollow: $0.keyset) }) {
        case nil: break
        case .notNewer(let version, let known): throw .staleKeyset(version: version, known: known)
        case let refusal?: throw .untrustedKeyset(detail: refusal.description)
        }
        guard now < keyset.expiresAt else { throw .expiredKeyset(expiredAt: keyset.expiresAt) }
        self.note = note
        self.keyset = keyset
    }

    /// A signature that names a pinned key and fails condemns the whole note (signed-note, "Signatures").
    private static func isSigned(_ note: SignedNote, by authorities: [AuthorityKey]) -> Bool {
        var isSigned = false
        for signature in note.signatures {
            let named = authorities.filter {
                $0.key.keyID == signature.keyID && $0.key.name.utf8.elementsEqual(signature.name.utf8)
            }
            guard !named.isEmpty else { continue }
            guard named.contains(where: { $0.isValid(signature.bytes, for: note.text) }) else { return false }
            isSigned = true
        }
        return isSigned
    }
}
