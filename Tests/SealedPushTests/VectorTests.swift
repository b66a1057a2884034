import Crypto
import Foundation
import SealedFormat
import SealedPush
import Testing

/// The vectors that every opener of the format is held against; their README says how they were made. The peers of
/// `SendgateEndToEndTests` open the same files.
@Suite struct VectorTests {
    struct File: Decodable {
        let suite: String
        let vectors: [Vector]
    }

    struct Vector: Decodable {
        let name, purpose, app, device, kid, envelope: String
        let privateKey, publicKey, originKey: String
        let now: UInt64
        let content, proof, refused: String?

        private enum CodingKeys: String, CodingKey {
            case name, purpose, app, device, kid, envelope, now, content, proof, refused
            case privateKey = "private_key"
            case publicKey = "public_key"
            case originKey = "origin_key"
        }
    }

    private static func bytes(of suite: SealingSuite) throws -> Data {
        let name = suite == .p256 ? "sealed-p256" : "sealed-x25519"
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        return try Data(contentsOf: tests.appendingPathComponent("Fixtures/Vectors/\(name).json"))
    }

    private static func deviceKey(_ suite: SealingSuite, _ vector: Vector) throws -> DeviceKey {
        let raw = try #require(Base64URL.decode(vector.privateKey))
        switch suite {
        case .p256:
            return try DeviceKey(
                keyID: vector.kid, privateKey: P256.KeyAgreement.PrivateKey(rawRepresentation: raw))
        case .x25519:
            return try DeviceKey(
                keyID: vector.kid, privateKey: Curve25519.KeyAgreement.PrivateKey(rawRepresentation: raw))
        }
    }

    /// The name of an error in the vectors.
    private static func reason(_ error: SealedPushError) -> String {
        switch error {
        case .malformedEnvelope: "malformed_envelope"
        case .unknownKey: "unknown_key"
        case .suiteMismatch: "suite_mismatch"
        case .expired: "expired"
        case .cannotOpen: "cannot_open"
        case .malformedMessage: "malformed_message"
        case .unknownOrigin: "unknown_origin"
        case .forgedOrigin: "forged_origin"
        default: "\(error)"
        }
    }

    /// Made once. Openers elsewhere are held against these very bytes.
    @Test(arguments: [
        (SealingSuite.p256, "485c161095d34648792f874d0d0acfbeefe421e9480eb9104a73ffd766c41fff"),
        (.x25519, "6ea19656a1bbb1e87075c9f7837152db1d9d4cf04ec3062156778f7a1230ad96"),
    ])
    func `the vectors are the ones that were made once`(suite: SealingSuite, digest: String) throws {
        #expect(IdentifierText.hexadecimal(Array(SHA256.hash(data: try Self.bytes(of: suite)))) == digest)
    }

    @Test(arguments: SealingSuite.allCases)
    func `every vector opens, or is refused for the reason it states`(suite: SealingSuite) throws {
        let file = try JSONDecoder().decode(File.self, from: Self.bytes(of: suite))
        #expect(file.suite == suite.rawValue)
        var (openedCount, refusals) = (0, Set<String>())
        for vector in file.vectors {
            let key = try Self.deviceKey(suite, vector)
            #expect(Base64URL.encode(key.publicKey) == vector.publicKey, "\(vector.name)")
            let originKey = try #require(Base64URL.decode(vector.originKey))
            let originKeyID = IdentifierText.hexadecimal(Array(SHA256.hash(data: originKey).prefix(8)))
            let opener = try SealedPushOpener(
                app: vector.app, device: vector.device, keys: [key],
                origins: [OriginKey(keyID: originKeyID, publicKey: originKey)], seen: InMemorySeenMessages())
            var (content, proof, refused): (String?, String?, String?)
            do throws(SealedPushError) {
                if vector.purpose == "challenge" {
                    proof = try opener.proof(forChallenge: vector.envelope, now: vector.now)
                } else {
                    let opening = try opener.open(vector.envelope, now: vector.now)
                    content = Base64URL.encode(opening.message.content)
                }
                openedCount += 1
            } catch {
                let reason = Self.reason(error)
                refused = reason
                refusals.insert(reason)
            }
            #expect(content == vector.content, "\(vector.name)")
            #expect(proof == vector.proof, "\(vector.name)")
            #expect(refused == vector.refused, "\(vector.name)")
        }
        #expect(openedCount == 13)
        #expect(file.vectors.count == 40)
        #expect(refusals.count == 8)
    }
}
